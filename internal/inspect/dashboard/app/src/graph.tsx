// The placed graph of a session, folded by name scope.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { getGraph, type Cluster, type PlacedGraph, type Recording } from "./api";
import { count, duration } from "./format";
import { arrange, type Placed } from "./arrange";
import { path, tree, visible, type Box } from "./scopes";

// maxBoxes bounds the boxes that are drawn, for the time that drawing takes.
const maxBoxes = 400;
// crowd is the number of boxes from which a search folds all other scopes.
const crowd = 100;
// maxFound bounds the nodes that a search lists.
const maxFound = 20;
// maxLegend bounds the tasks in the legend.
const maxLegend = 16;
const colours = 8;

const short = (device: string): string => device.replace(/^\/job:([^/]+)\/replica:\d+\/task:(\d+).*$/, "$1/$2") || "no device";

// times returns the compute time of nodes in a recording, in seconds, by name.
function times(recording?: Recording): Map<string, number> {
  const out = new Map<string, number>();
  for (const e of recording?.trace.traceEvents ?? []) {
    if (e.ph === "X" && e.args?.["op"]) out.set(e.name, (out.get(e.name) ?? 0) + (e.dur ?? 0) / 1e6);
  }
  return out;
}

// Model is a graph with what is derived from it once.
interface Model {
  graph: PlacedGraph;
  root: Box;
  tasks: string[]; // sorted
  taskOf: number[]; // position in tasks, by node
  consumers: number[][]; // by node
  leaves: Map<number, Box>;
}

function model(graph: PlacedGraph): Model {
  const names = graph.devices.map(short);
  const tasks = [...new Set(names)].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  const consumers: number[][] = graph.nodes.map(() => []);
  graph.nodes.forEach((n, i) => [...n[3], ...n[4]].forEach((from) => consumers[from]!.push(i)));
  const root = tree(graph);
  const leaves = new Map<number, Box>();
  const walk = (b: Box) => (b.members.length > 0 ? b.members.forEach(walk) : leaves.set(b.nodes[0]!, b));
  walk(root);
  return { graph, root, tasks, taskOf: graph.nodes.map((n) => tasks.indexOf(names[n[2]]!)), consumers, leaves };
}

function describe(m: Model, b: Box): string {
  if (b.members.length === 0) return `${b.op} on ${m.tasks[m.taskOf[b.nodes[0]!]!]}`;
  const on = [...new Set(b.nodes.map((i) => m.tasks[m.taskOf[i]!]!))].sort();
  return `${count(b.nodes.length, "node")} on ${on.length > 3 ? count(on.length, "task") : on.join(", ")}`;
}

// Stripe shows on which tasks the nodes of a box are, or their share of the time.
function Stripe({ m, at, heat }: { m: Model; at: Placed; heat?: number }) {
  const x = at.x - at.width / 2, y = at.y - at.height / 2;
  if (heat !== undefined) return <rect class="heat" x={x} y={y + at.height - 5} width={Math.max(at.width * heat, heat > 0 ? 2 : 0)} height={5} />;
  const counts = new Map<number, number>();
  for (const i of at.box.nodes) counts.set(m.taskOf[i]!, (counts.get(m.taskOf[i]!) ?? 0) + 1);
  let from = x;
  return (
    <>
      {[...counts].sort((a, b) => a[0] - b[0]).map(([task, n]) => {
        const width = (at.width * n) / at.box.nodes.length;
        from += width;
        return <rect key={task} class={`task-${task % colours}`} x={from - width} y={y + at.height - 5} width={width} height={5} />;
      })}
    </>
  );
}

function clip(text: string, width: number): string {
  const fits = Math.floor((width - 14) / 7);
  return text.length <= fits ? text : `${text.slice(0, fits - 1)}…`;
}

interface DrawingProps { m: Model; open: Set<string>; zoom: number; selected?: Box; heat?: Map<string, number>; toggle: (b: Box) => void }

function Drawing({ m, open, zoom, selected, heat, toggle }: DrawingProps) {
  const shown = useMemo(() => arrange(m.graph, m.root, open), [m, open]);
  const all = shown.layers.flatMap((l) => l.boxes);
  const scroll = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const at = selected && all.find((p) => p.box === selected);
    if (at) scroll.current?.scrollTo({ left: at.x * zoom - scroll.current.clientWidth / 2, top: at.y * zoom - scroll.current.clientHeight / 2 });
  }, [selected, shown, zoom]);
  const cost = (b: Box) => b.nodes.reduce((sum, i) => sum + (heat?.get(m.graph.nodes[i]![0]) ?? 0), 0);
  const most = heat && Math.max(...all.map((p) => cost(p.box)), 1e-9);
  const act = (b: Box) => (e: KeyboardEvent) => {
    if (e.key !== "Enter" && e.key !== " ") return;
    e.preventDefault();
    toggle(b);
  };
  return (
    <div class="scroll graph" ref={scroll} tabIndex={0} role="region" aria-label="Drawing of the graph; it scrolls">
      <svg width={shown.width * zoom} height={shown.height * zoom} viewBox={`0 0 ${shown.width} ${shown.height}`} role="group" aria-label="Graph">
        <defs>
          <marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerUnits="userSpaceOnUse" markerWidth="9" markerHeight="9" orient="auto"><path d="M0 0L8 4L0 8z" /></marker>
        </defs>
        {shown.layers.map((layer, depth) => (
          <g key={depth}>
            {layer.edges.map((e) => (
              <path key={e.key} class={e.control ? "edge control" : "edge"} d={e.path} stroke-width={Math.min(1 + Math.log2(e.count) / 3, 4)} marker-end="url(#tip)">
                <title>{count(e.count, "edge")}</title>
              </path>
            ))}
            {layer.frames.map((f) => (
              <g key={f.box.id} class="frame" role="button" tabindex={0} aria-expanded="true" data-box={f.box.id}
                onClick={() => toggle(f.box)} onKeyDown={act(f.box)}>
                <title>{`${f.box.id}: ${describe(m, f.box)}`}</title>
                <rect x={f.x - f.width / 2} y={f.y - f.height / 2} width={f.width} height={f.height} rx={6} />
                <text x={f.x - f.width / 2 + 7} y={f.y - f.height / 2 + 15}>{clip(`− ${f.box.label}`, f.width)}</text>
              </g>
            ))}
            {layer.boxes.map((p) => {
              const folded = p.box.members.length > 0;
              const time = heat && cost(p.box);
              return (
                <g key={p.box.id} class={`box${folded ? " folded" : ""}${p.box === selected ? " selected" : ""}`} role="button" tabindex={0}
                  aria-expanded={folded ? "false" : undefined} data-box={p.box.id}
                  onClick={() => toggle(p.box)} onKeyDown={act(p.box)}>
                  <title>{`${p.box.id}: ${describe(m, p.box)}`}</title>
                  <rect class="body" x={p.x - p.width / 2} y={p.y - p.height / 2} width={p.width} height={p.height} rx={folded ? 6 : 14} />
                  <Stripe m={m} at={p} heat={most && time !== undefined ? time / most : undefined} />
                  <text class="name" x={p.x - p.width / 2 + 7} y={p.y - 4}>{clip(folded ? `+ ${p.box.label}` : p.box.label, p.width)}</text>
                  <text class="about" x={p.x - p.width / 2 + 7} y={p.y + 10}>{clip(time === undefined ? describe(m, p.box) : duration(time), p.width)}</text>
                </g>
              );
            })}
          </g>
        ))}
      </svg>
    </div>
  );
}

function Links({ m, title, nodes, reveal }: { m: Model; title: string; nodes: number[]; reveal: (i: number) => void }) {
  if (nodes.length === 0) return <p class="note">No {title.toLowerCase()}.</p>;
  return (
    <details open={nodes.length <= 10}>
      <summary>{title} ({nodes.length})</summary>
      <ul class="links">
        {nodes.slice(0, 100).map((i) => <li key={i}><button type="button" class="link" onClick={() => reveal(i)}>{m.graph.nodes[i]![0]}</button></li>)}
        {nodes.length > 100 && <li class="note">and {nodes.length - 100} more</li>}
      </ul>
    </details>
  );
}

function Details({ m, box, heat, reveal }: { m: Model; box: Box; heat?: Map<string, number>; reveal: (i: number) => void }) {
  const i = box.nodes[0]!;
  const [name, op, device, inputs, controls] = m.graph.nodes[i]!;
  const time = heat?.get(name);
  return (
    <article aria-labelledby="node">
      <h3 id="node">{name}</h3>
      <p>{m.graph.ops[op]} on {m.graph.devices[device] || "no device"}{time !== undefined && `, ${duration(time)} in the recording`}</p>
      <Links m={m} title="Inputs" nodes={[...new Set(inputs)]} reveal={reveal} />
      <Links m={m} title="Control inputs" nodes={controls} reveal={reveal} />
      <Links m={m} title="Consumers" nodes={[...new Set(m.consumers[i])]} reveal={reveal} />
    </article>
  );
}

// Explorer shows one graph. Graph unmounts it before it loads another, so its state begins anew. An
// effect that resets the state would run after the drawing is on the page, and undo an early click.
function Explorer({ graph, recording }: { graph: PlacedGraph; recording?: Recording }) {
  const m = useMemo(() => model(graph), [graph]);
  const heat = useMemo(() => times(recording), [recording]);
  const [open, setOpen] = useState<Set<string>>(new Set());
  const [selected, setSelected] = useState<Box>();
  const [zoom, setZoom] = useState(1);
  const [byTime, setByTime] = useState(false);
  const [search, setSearch] = useState("");
  const [warning, setWarning] = useState("");
  const tryOpen = (next: Set<string>): boolean => {
    const fits = visible(m.root, next) <= maxBoxes;
    setWarning(fits ? "" : `More than ${maxBoxes} boxes are not drawn: fold a scope first.`);
    if (fits) setOpen(next);
    return fits;
  };
  const toggle = (b: Box) => {
    if (b.members.length === 0) {
      setSelected(b);
      return;
    }
    const next = new Set(open);
    if (!next.delete(b.id)) next.add(b.id);
    tryOpen(next);
  };
  const reveal = (i: number) => {
    const leaf = m.leaves.get(i)!;
    const around = path(leaf).map((b) => b.id);
    const all = new Set([...open, ...around]);
    if (tryOpen(visible(m.root, all) <= crowd ? all : new Set(around))) setSelected(leaf);
  };
  const found = useMemo(() => {
    if (search === "") return [];
    const text = search.toLowerCase();
    return graph.nodes.flatMap((n, i) => (n[0].toLowerCase().includes(text) || graph.ops[n[1]]!.toLowerCase() === text ? [i] : []));
  }, [graph, search]);
  return (
    <>
      <div class="tools">
        <label class="field">Search <input type="search" value={search} onInput={(e) => setSearch((e.target as HTMLInputElement).value)} placeholder="name or operation" /></label>
        <label class="field"><input type="checkbox" checked={byTime} disabled={heat.size === 0} onChange={() => setByTime(!byTime)} /> by time</label>
        <button type="button" onClick={() => setZoom(Math.min(zoom * 1.25, 3))} aria-label="Zoom in">+</button>
        <button type="button" onClick={() => setZoom(Math.max(zoom / 1.25, 0.1))} aria-label="Zoom out">−</button>
        <button type="button" onClick={() => tryOpen(new Set())}>Fold all</button>
        <span class="note">{heat.size === 0 ? "For colours by time, record on the page Timeline." : ""}</span>
      </div>
      {found.length > 0 && (
        <ul class="links" aria-label="Found nodes">
          {found.slice(0, maxFound).map((i) => <li key={i}><button type="button" class="link" onClick={() => reveal(i)}>{graph.nodes[i]![0]}</button></li>)}
          {found.length > maxFound && <li class="note">and {found.length - maxFound} more</li>}
        </ul>
      )}
      {search !== "" && found.length === 0 && <p class="note">No node has this name or operation.</p>}
      <p role="status" class="bad">{warning}</p>
      {!byTime && (
        <ul class="legend" aria-label="Colours of tasks">
          {m.tasks.slice(0, maxLegend).map((t, i) => <li key={t}><svg width="12" height="12" aria-hidden="true"><rect class={`task-${i % colours}`} width="12" height="12" /></svg> {t}</li>)}
          {m.tasks.length > maxLegend && <li class="note">and {m.tasks.length - maxLegend} more; the colours repeat</li>}
        </ul>
      )}
      <Drawing m={m} open={open} zoom={zoom} selected={selected} heat={byTime ? heat : undefined} toggle={toggle} />
      {selected && <Details m={m} box={selected} heat={heat.size > 0 ? heat : undefined} reveal={reveal} />}
    </>
  );
}

export function Graph({ cluster, recording }: { cluster: Cluster; recording?: Recording }) {
  const sessions = cluster.tasks.flatMap((task) => task.sessions.map((s) => ({ task: task.name, handle: s.handle, nodes: s.nodes })));
  const [chosen, choose] = useState("");
  const [state, setState] = useState<{ graph?: PlacedGraph; error?: string }>({});
  const [version, reload] = useState(0);
  const current = sessions.find((s) => `${s.task} ${s.handle}` === chosen) ?? [...sessions].sort((a, b) => b.nodes - a.nodes)[0];
  const key = current && `${current.task} ${current.handle}`;
  useEffect(() => {
    setState({});
    if (!current) return;
    const abort = new AbortController();
    getGraph(current.task, current.handle, abort.signal).then(
      (graph) => setState({ graph }),
      (error: unknown) => abort.signal.aborted || setState({ error: error instanceof Error ? error.message : String(error) }),
    );
    return () => abort.abort();
  }, [key, version]);
  return (
    <section aria-labelledby="graph">
      <h2 id="graph">Graph</h2>
      {!current && <p class="note">No client has a session.</p>}
      {current && (
        <div class="tools">
          <label class="field">Session <select value={key} onChange={(e) => choose((e.target as HTMLSelectElement).value)}>
            {sessions.map((s) => <option key={`${s.task} ${s.handle}`} value={`${s.task} ${s.handle}`}>{s.handle}… at {s.task}, {count(s.nodes, "node")}</option>)}
          </select></label>
          <button type="button" onClick={() => reload(version + 1)}>Load again</button>
        </div>
      )}
      {state.error && <p role="alert" class="bad">{state.error}</p>}
      {current && !state.graph && !state.error && <p role="status" class="note">Loading the graph…</p>}
      {state.graph && <Explorer graph={state.graph} recording={recording} />}
    </section>
  );
}
