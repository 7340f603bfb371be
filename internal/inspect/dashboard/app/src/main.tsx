// The dashboard of a cluster: one page that asks a task every two seconds.

import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { getCluster, type Cluster, type Recording } from "./api";
import { count } from "./format";
import { Graph } from "./graph";
import { Log } from "./log";
import { Overview } from "./overview";
import { usePolled } from "./poll";
import { Resources } from "./resources";
import { Scalars } from "./scalars";
import { Timeline } from "./timeline";

const pages = [
  { path: "#/", title: "Overview" },
  { path: "#/resources", title: "Variables and queues" },
  { path: "#/graph", title: "Graph" },
  { path: "#/scalars", title: "Scalars" },
  { path: "#/timeline", title: "Timeline" },
  { path: "#/log", title: "Log" },
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
  const { data: cluster, error } = usePolled<Cluster>(getCluster);
  const [recording, setRecording] = useState<Recording>();
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
        {cluster && title === "Variables and queues" && <Resources cluster={cluster} />}
        {cluster && title === "Graph" && <Graph cluster={cluster} recording={recording} />}
        {title === "Scalars" && <Scalars theme={theme} />}
        {title === "Log" && <Log />}
        <div hidden={title !== "Timeline"}>
          <Timeline theme={theme} onRecorded={setRecording} />
        </div>
      </main>
    </>
  );
}

render(<App />, document.getElementById("app")!);
