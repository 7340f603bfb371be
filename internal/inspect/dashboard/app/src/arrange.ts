// Places the visible boxes of a graph on the plane. The members of each open group are arranged by
// themselves, and the group is then one box among its neighbours. So the time grows with the open
// groups, and an edge that leaves a group begins at its frame.

import * as dagre from "@dagrejs/dagre";
import type { PlacedGraph } from "./api";
import type { Box } from "./scopes";

// Placed is a box or frame with its centre.
export interface Placed {
  box: Box;
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Drawn {
  key: string;
  path: string; // of SVG
  count: number; // of edges of the graph
  control: boolean; // none of them carries a tensor
}

// Layer is what lies within frames of one depth. Edges are behind the boxes and frames of their
// layer, and deeper layers are before them.
export interface Layer {
  edges: Drawn[];
  frames: Placed[];
  boxes: Placed[];
}

export interface Arrangement {
  layers: Layer[];
  width: number;
  height: number;
}

const boxHeight = 42;
const titleHeight = 20; // of a frame

interface Point {
  x: number;
  y: number;
}

function boxWidth(b: Box): number {
  return Math.min(Math.max(120, 22 + 7 * b.label.length), 240);
}

// Link stands for the edges of the graph between two members of a group.
interface Link {
  count: number;
  data: boolean;
}

// links returns the edges between the members of a group by the positions of both, from * n + to.
function links(g: PlacedGraph, group: Box): Map<number, Link> {
  const n = group.members.length;
  const at = new Map<number, number>();
  group.members.forEach((m, i) => m.nodes.forEach((node) => at.set(node, i)));
  const out = new Map<number, Link>();
  const add = (from: number, to: number, data: boolean) => {
    const a = at.get(from);
    if (a === undefined || a === to) return;
    const found = out.get(a * n + to);
    if (found) {
      found.count++;
      found.data ||= data;
    } else out.set(a * n + to, { count: 1, data });
  };
  for (const [node, to] of at) {
    const [, , , inputs, controls] = g.nodes[node]!;
    inputs.forEach((from) => add(from, to, true));
    controls.forEach((from) => add(from, to, false));
  }
  return out;
}

// arrange places the members of a group, those of open groups within them.
export function arrange(g: PlacedGraph, group: Box, open: Set<string>): Arrangement {
  const inner = group.members.map((m) => (m.members.length > 0 && open.has(m.id) ? arrange(g, m, open) : undefined));
  const n = group.members.length;
  const d = new dagre.graphlib.Graph();
  d.setGraph({ rankdir: "BT", nodesep: 18, ranksep: 34, marginx: 10, marginy: 10 });
  d.setDefaultEdgeLabel(() => ({}));
  group.members.forEach((m, i) => {
    const a = inner[i];
    d.setNode(`${i}`, a ? { width: Math.max(a.width, boxWidth(m)), height: a.height + titleHeight } : { width: boxWidth(m), height: boxHeight });
  });
  const between = links(g, group);
  for (const key of between.keys()) d.setEdge(`${Math.floor(key / n)}`, `${key % n}`);
  dagre.layout(d);
  const size = d.graph();
  const layer: Layer = { edges: [], frames: [], boxes: [] };
  const out: Arrangement = { layers: [layer], width: size.width ?? 0, height: size.height ?? 0 };
  group.members.forEach((m, i) => {
    const at = d.node(`${i}`);
    const placed: Placed = { box: m, x: at.x ?? 0, y: at.y ?? 0, width: at.width ?? 0, height: at.height ?? 0 };
    const a = inner[i];
    if (!a) {
      layer.boxes.push(placed);
      return;
    }
    layer.frames.push(placed);
    add(out, a, placed.x - a.width / 2, placed.y - placed.height / 2 + titleHeight);
  });
  for (const [key, e] of between) {
    const from = Math.floor(key / n), to = key % n;
    const points: Point[] = d.edge(`${from}`, `${to}`).points ?? [];
    layer.edges.push({ key: `${group.members[from]!.id} ${group.members[to]!.id}`, path: line(points), count: e.count, control: !e.data });
  }
  return out;
}

// add moves an arrangement and adds it to the one around it.
function add(to: Arrangement, a: Arrangement, x: number, y: number): void {
  const move = (p: Placed): Placed => ({ ...p, x: p.x + x, y: p.y + y });
  a.layers.forEach((from, i) => {
    const layer = (to.layers[i + 1] ??= { edges: [], frames: [], boxes: [] });
    layer.boxes.push(...from.boxes.map(move));
    layer.frames.push(...from.frames.map(move));
    layer.edges.push(...from.edges.map((e) => ({ ...e, path: shift(e.path, x, y) })));
  });
}

// shift moves a path that line has made.
function shift(path: string, x: number, y: number): string {
  return path.replace(/(-?[\d.]+) (-?[\d.]+)/g, (_, px: string, py: string) => `${(Number(px) + x).toFixed(1)} ${(Number(py) + y).toFixed(1)}`);
}

// line returns a path through points with round corners.
function line(points: Point[]): string {
  if (points.length === 0) return "";
  const text = (p: Point) => `${p.x.toFixed(1)} ${p.y.toFixed(1)}`;
  let out = `M${text(points[0]!)}`;
  for (let i = 1; i < points.length - 1; i++) {
    const p = points[i]!, q = points[i + 1]!;
    out += `Q${text(p)} ${text(i === points.length - 2 ? q : { x: (p.x + q.x) / 2, y: (p.y + q.y) / 2 })}`;
  }
  return points.length === 2 ? `${out}L${text(points[1]!)}` : out;
}
