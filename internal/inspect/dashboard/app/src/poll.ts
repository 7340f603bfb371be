// Asks for data again and again while the page is visible.

import { useEffect, useState } from "preact/hooks";

const interval = 2000; // ms

// usePolled returns what ask has answered last. An error keeps the last answer, another key drops it.
export function usePolled<T>(ask: (signal: AbortSignal) => Promise<T>, key = ""): { data?: T; error?: string } {
  const [state, setState] = useState<{ data?: T; error?: string }>({});
  useEffect(() => {
    setState({});
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout>;
    const run = async () => {
      if (!document.hidden) {
        try {
          const data = await ask(abort.signal);
          if (!abort.signal.aborted) setState({ data });
        } catch (error) {
          if (abort.signal.aborted) return;
          setState((s) => ({ data: s.data, error: `The task does not answer: ${error instanceof Error ? error.message : error}` }));
        }
      }
      if (!abort.signal.aborted) timer = setTimeout(run, interval);
    };
    void run();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [key]);
  return state;
}
