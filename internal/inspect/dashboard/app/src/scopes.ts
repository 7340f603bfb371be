// The name scopes of a graph as a tree, whose inner nodes can be folded.

import type { PlacedGraph } from "./api";

// A Box is a node of the graph, or a group of boxes: a name scope, or a part of one that has too
// many members to show at once.
export interface Box {
  id: string; // the name of the scope or node; parts of a scope have a suffix
  label: string;
  parent?: Box;
  members: Box[]; // empty for a node
  nodes: number[]; // positions of all nodes below it
  op: string; // of a node; "" for a group
}

// most is the largest number of members of a group: more cannot be told apart on a screen.
const most = 40;

export function tree(g: PlacedGraph): Box {
  const root: Box = { id: "", label: "graph", members: [], nodes: [], op: "" };
  const scopes = new Map<string, Box>([["", root]]);
  const names = new Set(g.nodes.map((n) => n[0]));
  const scope = (name: string): Box => {
    let found = scopes.get(name);
    if (!found) {
      const cut = name.lastIndexOf("/");
      const parent = scope(cut < 0 ? "" : name.slice(0, cut));
      // A node may have the name of a scope.
      found = { id: names.has(name) ? `${name}/` : name, label: name.slice(cut + 1), parent, members: [], nodes: [], op: "" };
      parent.members.push(found);
      scopes.set(name, found);
    }
    return found;
  };
  g.nodes.forEach(([name, op], i) => {
    const cut = name.lastIndexOf("/");
    const parent = scope(cut < 0 ? "" : name.slice(0, cut));
    parent.members.push({ id: name, label: name.slice(cut + 1), parent, members: [], nodes: [i], op: g.ops[op]! });
    for (let b: Box | undefined = parent; b; b = b.parent) b.nodes.push(i);
  });
  for (const b of scopes.values()) divide(b);
  return root;
}

// divide groups the members of a box if there are too many: nodes by operation, and then ranges of
// names.
function divide(b: Box): void {
  if (b.members.length <= most) return;
  const byOp = new Map<string, Box[]>();
  const members: Box[] = [];
  for (const m of b.members) {
    if (m.members.length > 0 || m.op === "") members.push(m);
    else byOp.set(m.op, [...(byOp.get(m.op) ?? []), m]);
  }
  for (const [op, list] of byOp) members.push(list.length > 3 ? group(b, `${b.id}:${op}`, op, list) : list[0]!, ...(list.length > 3 ? [] : list.slice(1)));
  b.members = ranges(b, members);
  for (const m of b.members) if (m.parent === b && m.id.startsWith(`${b.id}:`)) m.members = ranges(m, m.members);
}

function group(parent: Box, id: string, label: string, members: Box[]): Box {
  const out: Box = { id, label: `${members.length} × ${label}`, parent, members, nodes: members.flatMap((m) => m.nodes), op: "" };
  for (const m of members) m.parent = out;
  return out;
}

function ranges(parent: Box, members: Box[]): Box[] {
  while (members.length > most) {
    const size = Math.max(most, Math.ceil(members.length / most));
    const out: Box[] = [];
    for (let i = 0; i < members.length; i += size) {
      const part = members.slice(i, i + size);
      if (part.length === 1) {
        out.push(part[0]!);
        continue;
      }
      const box = group(parent, `${part[0]!.id}…`, "", part);
      box.label = `${part[0]!.label} … ${part.at(-1)!.label}`;
      out.push(box);
    }
    members = out;
  }
  return members;
}

// visible returns the number of boxes to draw when some groups are open.
export function visible(b: Box, open: Set<string>): number {
  if (b.members.length === 0 || (b.parent && !open.has(b.id))) return 1;
  return b.members.reduce((sum, m) => sum + visible(m, open), 0);
}

// path returns the groups around a box, except the root.
export function path(b: Box): Box[] {
  const out: Box[] = [];
  for (let p = b.parent; p?.parent; p = p.parent) out.push(p);
  return out;
}
