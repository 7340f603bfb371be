// The dashboard of a cluster: one page that asks a task every two seconds.

import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { getCluster, type Cluster } from "./api";
import { count } from "./format";
import { Overview } from "./overview";
import { Resources } from "./resources";
import { Timeline } from "./timeline";

const interval = 2000; // ms

const pages = [
  { path: "#/", title: "Overview" },
  { path: "#/resources", title: "Variables and queues" },
  { path: "#/timeline", title: "Timeline" },
];

function usePath(): string {
  const [path, setPath] = useState(location.hash || "#/");
  useEffect(() => {
    const changed = () => setPath(location.hash || "#/");
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return path;
}

// useCluster asks for the state while the page is visible. An error keeps the last state.
function useCluster(): { cluster?: Cluster; error?: string } {
  const [state, setState] = useState<{ cluster?: Cluster; error?: string }>({});
  useEffect(() => {
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout>;
    const ask = async () => {
      if (!document.hidden) {
        try {
          setState({ cluster: await getCluster(abort.signal) });
        } catch (error) {
          if (abort.signal.aborted) return;
          setState((s) => ({ cluster: s.cluster, error: `The task does not answer: ${error instanceof Error ? error.message : error}` }));
        }
      }
      timer = setTimeout(ask, interval);
    };
    void ask();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, []);
  return state;
}

function useTheme(): [string, () => void] {
  const [theme, setTheme] = useState(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  useEffect(() => {
    document.documentElement.dataset["theme"] = theme;
  }, [theme]);
  return [theme, () => setTheme(theme === "dark" ? "light" : "dark")];
}

function Header({ cluster, error }: { cluster?: Cluster; error?: string }) {
  const silent = cluster?.tasks.filter((t) => t.error) ?? [];
  return (
    <>
      <p role="status" class="state-line">
        {cluster ? `${count(cluster.tasks.length, "task")}, seen by ${cluster.self}` : "Asking the cluster…"}
        {cluster && silent.length > 0 && <strong class="bad">; no answer from {silent.map((t) => t.name).join(", ")}</strong>}
      </p>
      {error && <p role="alert" class="bad">{error}</p>}
    </>
  );
}

function App() {
  const path = usePath();
  const { cluster, error } = useCluster();
  const [theme, toggle] = useTheme();
  const title = (pages.find((p) => p.path === path) ?? pages[0]!).title;
  useEffect(() => {
    document.title = `${title} – Weft`;
  }, [title]);
  return (
    <>
      <header>
        <h1>Weft</h1>
        <nav aria-label="Pages">
          {pages.map((p) => (
            <a key={p.path} href={p.path} aria-current={p.title === title ? "page" : undefined}>{p.title}</a>
          ))}
        </nav>
        <button type="button" onClick={toggle}>{theme === "dark" ? "Light" : "Dark"} colours</button>
      </header>
      <main>
        <Header cluster={cluster} error={error} />
        {cluster && title === pages[0]!.title && <Overview cluster={cluster} />}
        {cluster && title === pages[1]!.title && <Resources cluster={cluster} />}
        <div hidden={title !== pages[2]!.title}>
          <Timeline theme={theme} />
        </div>
      </main>
    </>
  );
}

render(<App />, document.getElementById("app")!);
