// Records the cluster, and shows the timeline.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { record, type Recording } from "./api";
import { draw, find, gutter, type View } from "./drawing";
import { duration } from "./format";
import { layout, type Lanes, type Span } from "./lanes";

function colours(): (name: string) => string {
  const style = getComputedStyle(document.documentElement);
  const known = new Map<string, string>();
  return (name) => {
    let value = known.get(name);
    if (value === undefined) {
      value = style.getPropertyValue(`--${name}`).trim();
      known.set(name, value);
    }
    return value;
  };
}

function Picture({ lanes, theme }: { lanes: Lanes; theme: string }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const frame = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(800);
  const [view, setView] = useState({ start: 0, scale: 1 });
  const [under, setUnder] = useState<Span>();
  const whole = () => setView({ start: 0, scale: Math.max(lanes.end, 1) / Math.max(width - gutter - 10, 50) });
  useEffect(() => {
    const observer = new ResizeObserver(() => setWidth(frame.current?.clientWidth ?? 800));
    observer.observe(frame.current!);
    return () => observer.disconnect();
  }, []);
  useEffect(whole, [lanes, width]);
  const current: View = { ...view, width };
  useEffect(() => {
    const id = requestAnimationFrame(() => draw(canvas.current!, lanes, current, colours()));
    return () => cancelAnimationFrame(id);
  }, [lanes, view, width, theme]);

  const zoom = (factor: number, at = (width - gutter) / 2 + gutter) =>
    setView((v) => {
      const scale = Math.min(Math.max(v.scale * factor, 1e-3), (2 * Math.max(lanes.end, 1)) / width);
      return { scale, start: Math.max(v.start + (at - gutter) * (v.scale - scale), 0) };
    });
  const move = (pixels: number) => setView((v) => ({ ...v, start: Math.min(Math.max(v.start + pixels * v.scale, 0), lanes.end) }));
  const key = (e: KeyboardEvent) => {
    const actions: Record<string, () => void> = {
      "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), "0": whole, ArrowLeft: () => move(-80), ArrowRight: () => move(80),
    };
    const action = actions[e.key];
    if (action) {
      action();
      e.preventDefault();
    }
  };
  const wheel = (e: WheelEvent) => {
    if (!e.ctrlKey && !e.shiftKey && Math.abs(e.deltaX) <= Math.abs(e.deltaY)) return; // scrolls the page
    e.preventDefault();
    if (e.ctrlKey) zoom(e.deltaY > 0 ? 1.25 : 0.8, e.offsetX);
    else move(e.deltaX || e.deltaY);
  };
  const drag = (e: PointerEvent) => {
    if (e.buttons === 1) move(-e.movementX);
    else setUnder(find(lanes, current, e.offsetX, e.offsetY));
  };
  return (
    <div ref={frame}>
      <div class="tools">
        <button type="button" onClick={() => zoom(0.5)} aria-label="Zoom in">+</button>
        <button type="button" onClick={() => zoom(2)} aria-label="Zoom out">−</button>
        <button type="button" onClick={() => move(-200)} aria-label="Earlier">←</button>
        <button type="button" onClick={() => move(200)} aria-label="Later">→</button>
        <button type="button" onClick={whole}>Whole</button>
        <output class="under">
          {under ? <><strong>{under.name}</strong> {duration((under.end - under.start) / 1e6)}, {under.detail}</> : "Point at a bar for its name and time."}
        </output>
      </div>
      <canvas ref={canvas} tabIndex={0} role="img" onKeyDown={key} onWheel={wheel} onPointerMove={drag}
        aria-label="Timeline of all tasks. Plus and minus zoom, the arrow keys move, 0 shows the whole. The summary below says the same in words." />
    </div>
  );
}

function save(recording: Recording): void {
  const url = URL.createObjectURL(new Blob([JSON.stringify(recording.trace)], { type: "application/json" }));
  const a = document.createElement("a");
  a.href = url;
  a.download = "trace.json";
  a.click();
  URL.revokeObjectURL(url);
}

export function Timeline({ theme, onRecorded }: { theme: string; onRecorded: (r: Recording) => void }) {
  const [steps, setSteps] = useState(5);
  const [seconds, setSeconds] = useState(5);
  const [state, setState] = useState<{ recording?: Recording; error?: string; running?: AbortController }>({});
  const lanes = useMemo(() => state.recording && layout(state.recording.trace.traceEvents), [state.recording]);
  const start = (e: Event) => {
    e.preventDefault();
    const running = new AbortController();
    setState((s) => ({ ...s, running, error: undefined }));
    record(steps, seconds, running.signal).then(
      (recording) => {
        setState({ recording });
        onRecorded(recording);
      },
      (error: unknown) => setState((s) => ({ recording: s.recording, error: running.signal.aborted ? undefined : String(error) })),
    );
  };
  const number = (e: Event) => (e.target as HTMLInputElement).valueAsNumber || 0;
  return (
    <section aria-labelledby="timeline">
      <h2 id="timeline">Timeline</h2>
      <form onSubmit={start} class="tools">
        <label class="field">Steps <input type="number" min={0} max={10000} value={steps} onInput={(e) => setSteps(number(e))} /></label>
        <label class="field">at most seconds <input type="number" min={1} max={60} value={seconds} onInput={(e) => setSeconds(number(e))} /></label>
        {state.running
          ? <button type="button" onClick={() => state.running?.abort()}>Cancel</button>
          : <button type="submit">Record all tasks</button>}
        {state.recording && <button type="button" onClick={() => save(state.recording!)}>Save for Perfetto</button>}
      </form>
      <p role="status" class="note">{state.running ? "Recording…" : ""}</p>
      {state.error && <p role="alert" class="bad">{state.error}</p>}
      {!state.recording && !state.running && (
        <p class="note">A recording shows what every task executes, on one clock. It ends when a task has finished the steps, or at the time limit. Training goes on meanwhile.</p>
      )}
      {lanes && <Picture lanes={lanes} theme={theme} />}
      {state.recording && (
        <>
          <h3>Where the time went</h3>
          <pre tabIndex={0} aria-label="Summary of the recording">{state.recording.summary}</pre>
        </>
      )}
    </section>
  );
}
