// The rows of a timeline, from the events of a trace.

import type { TraceEvent } from "./api";

export interface Span {
  name: string;
  kind: string; // colour: step, part, receive, wait, compute
  start: number; // µs
  end: number;
  detail: string;
}

export interface Row {
  title: string; // "" for the further rows of a group
  spans: Span[]; // by start
}

export interface Process {
  name: string;
  rows: Row[];
}

// Arrow is a transfer between two tasks. Rows are numbered over all processes.
export interface Arrow {
  fromRow: number;
  toRow: number;
  start: number;
  end: number;
}

export interface Lanes {
  processes: Process[];
  arrows: Arrow[];
  end: number; // µs
}

function kindOf(title: string): string {
  if (title.startsWith("steps")) return "step";
  if (title.startsWith("parts")) return "part";
  if (title.startsWith("receives")) return "receive";
  if (title.startsWith("waits")) return "wait";
  return "compute";
}

function detail(e: TraceEvent): string {
  const args = Object.entries(e.args ?? {}).map(([k, v]) => `${k}: ${v}`);
  return [e.cat ?? "", ...args].filter(Boolean).join(", ");
}

export function layout(events: TraceEvent[]): Lanes {
  const names = new Map<number, string>();
  const titles = new Map<number, Map<number, string>>();
  const spans = new Map<string, Span[]>();
  const ends = new Map<number, { from?: TraceEvent; to?: TraceEvent }>();
  let end = 0;
  for (const e of events) {
    if (e.ph === "M" && e.name === "process_name") {
      names.set(e.pid, String(e.args?.["name"]));
    } else if (e.ph === "M" && e.name === "thread_name") {
      const own = titles.get(e.pid) ?? new Map<number, string>();
      titles.set(e.pid, own.set(e.tid, String(e.args?.["name"])));
    } else if (e.ph === "X") {
      const key = `${e.pid}/${e.tid}`;
      const title = titles.get(e.pid)?.get(e.tid) ?? "";
      const list = spans.get(key) ?? [];
      const stop = e.ts + (e.dur ?? 0);
      list.push({ name: e.name, kind: kindOf(title), start: e.ts, end: stop, detail: detail(e) });
      spans.set(key, list);
      end = Math.max(end, stop);
    } else if (e.ph === "s" || e.ph === "f") {
      const pair = ends.get(e.id ?? 0) ?? {};
      if (e.ph === "s") pair.from = e;
      else pair.to = e;
      ends.set(e.id ?? 0, pair);
    }
  }
  const processes: Process[] = [];
  const position = new Map<string, number>();
  let row = 0;
  for (const [pid, name] of [...names].sort((a, b) => a[0] - b[0])) {
    const rows: Row[] = [];
    for (const [tid, title] of [...(titles.get(pid) ?? [])].sort((a, b) => a[0] - b[0])) {
      const key = `${pid}/${tid}`;
      position.set(key, row++);
      const list = (spans.get(key) ?? []).sort((a, b) => a.start - b.start);
      rows.push({ title: tid % 1000 === 0 ? title : "", spans: list });
    }
    processes.push({ name, rows });
  }
  const arrows: Arrow[] = [];
  for (const { from, to } of ends.values()) {
    if (!from || !to) continue;
    const fromRow = position.get(`${from.pid}/${from.tid}`);
    const toRow = position.get(`${to.pid}/${to.tid}`);
    if (fromRow !== undefined && toRow !== undefined) arrows.push({ fromRow, toRow, start: from.ts, end: to.ts });
  }
  return { processes, arrows, end };
}

// firstAfter returns the position of the first span that ends after a time.
export function firstAfter(spans: Span[], time: number): number {
  let low = 0;
  let high = spans.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (spans[middle]!.end > time) high = middle;
    else low = middle + 1;
  }
  return low;
}
