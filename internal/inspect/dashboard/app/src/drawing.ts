// Draws the rows of a timeline on a canvas. Rows are drawn from the first span in view on, and
// spans that share a pixel are drawn once, so that the time depends on the pixels and not on the
// length of the recording.

import { firstAfter, type Lanes, type Span } from "./lanes";

export const rowHeight = 18;
export const headerHeight = 22;
export const axisHeight = 20;
export const gutter = 150; // width of the titles

const maxArrows = 400; // in view; more would hide the rest

export interface View {
  start: number; // µs at the left edge
  scale: number; // µs for each pixel
  width: number;
}

// top returns the vertical position of each row, and the height of the picture.
export function places(lanes: Lanes): { tops: number[]; height: number } {
  const tops: number[] = [];
  let y = axisHeight;
  for (const p of lanes.processes) {
    y += headerHeight;
    for (let i = 0; i < p.rows.length; i++) {
      tops.push(y);
      y += rowHeight;
    }
  }
  return { tops, height: y + 4 };
}

function step(span: number): number {
  const power = 10 ** Math.floor(Math.log10(span));
  for (const m of [1, 2, 5, 10]) if (m * power >= span) return m * power;
  return 10 * power;
}

function label(us: number): string {
  if (us >= 1e6) return `${+(us / 1e6).toFixed(4)} s`;
  if (us >= 1e3) return `${+(us / 1e3).toFixed(3)} ms`;
  return `${+us.toFixed(2)} µs`;
}

export function draw(canvas: HTMLCanvasElement, lanes: Lanes, view: View, colour: (name: string) => string): void {
  const ratio = window.devicePixelRatio || 1;
  const { tops, height } = places(lanes);
  canvas.width = view.width * ratio;
  canvas.height = height * ratio;
  canvas.style.height = `${height}px`;
  const c = canvas.getContext("2d");
  if (!c) return;
  c.scale(ratio, ratio);
  c.font = "12px system-ui, sans-serif";
  c.textBaseline = "middle";
  c.fillStyle = colour("surface");
  c.fillRect(0, 0, view.width, height);
  const x = (us: number) => gutter + (us - view.start) / view.scale;
  axis(c, view, height, x, colour);
  let row = 0;
  for (const p of lanes.processes) {
    const y = (tops[row] ?? height) - headerHeight;
    c.fillStyle = colour("line");
    c.fillRect(0, y, view.width, 1);
    c.fillStyle = colour("text");
    c.font = "bold 13px system-ui, sans-serif";
    c.fillText(p.name, 6, y + headerHeight / 2);
    c.font = "12px system-ui, sans-serif";
    for (const r of p.rows) {
      const top = tops[row++]!;
      spans(c, r.spans, view, top, x, colour);
      c.fillStyle = colour("surface");
      c.fillRect(0, top, gutter - 2, rowHeight);
      c.fillStyle = colour("muted");
      c.fillText(r.title, 14, top + rowHeight / 2, gutter - 20);
    }
  }
  arrows(c, lanes, view, tops, x, colour);
}

function axis(c: CanvasRenderingContext2D, view: View, height: number, x: (us: number) => number, colour: (name: string) => string): void {
  const every = step(view.scale * 110);
  c.fillStyle = colour("muted");
  for (let t = Math.ceil(view.start / every) * every; x(t) < view.width; t += every) {
    if (x(t) < gutter) continue;
    c.fillStyle = colour("line");
    c.fillRect(Math.round(x(t)), axisHeight, 1, height);
    c.fillStyle = colour("muted");
    c.fillText(label(t), x(t) + 3, axisHeight / 2);
  }
}

function spans(c: CanvasRenderingContext2D, list: Span[], view: View, top: number, x: (us: number) => number, colour: (name: string) => string): void {
  let drawn = gutter - 1; // right edge of what is drawn
  for (let i = firstAfter(list, view.start); i < list.length; i++) {
    const s = list[i]!;
    const left = Math.max(x(s.start), gutter);
    if (left > view.width) return;
    const right = Math.max(x(s.end), left + 1);
    if (right <= drawn) continue;
    c.fillStyle = colour(s.kind);
    c.fillRect(left, top + 2, right - left, rowHeight - 4);
    drawn = right;
    const room = Math.min(right, view.width) - left - 6;
    if (room > 30) {
      c.save();
      c.beginPath();
      c.rect(left, top, room + 4, rowHeight);
      c.clip();
      c.fillStyle = colour(`on-${s.kind}`);
      c.fillText(s.name, left + 3, top + rowHeight / 2);
      c.restore();
    }
  }
}

function arrows(c: CanvasRenderingContext2D, lanes: Lanes, view: View, tops: number[], x: (us: number) => number, colour: (name: string) => string): void {
  const end = view.start + (view.width - gutter) * view.scale;
  const seen = lanes.arrows.filter((a) => a.end >= view.start && a.start <= end);
  if (seen.length > maxArrows) return;
  c.strokeStyle = colour("arrow");
  c.fillStyle = colour("arrow");
  for (const a of seen) {
    const [x1, x2] = [x(a.start), x(a.end)];
    if (x1 < gutter || x2 > view.width) continue;
    const [y1, y2] = [tops[a.fromRow]! + rowHeight / 2, tops[a.toRow]! + rowHeight / 2];
    c.beginPath();
    c.moveTo(x1, y1);
    c.lineTo(x2, y2);
    c.stroke();
    c.beginPath();
    c.arc(x2, y2, 2.5, 0, 2 * Math.PI);
    c.fill();
  }
}

// find returns the span at a position of the picture.
export function find(lanes: Lanes, view: View, px: number, py: number): Span | undefined {
  const { tops } = places(lanes);
  const at = tops.findIndex((top) => py >= top && py < top + rowHeight);
  if (at < 0 || px < gutter) return undefined;
  const list = lanes.processes.flatMap((p) => p.rows)[at]!.spans;
  const time = view.start + (px - gutter) * view.scale;
  const near = view.scale; // one pixel
  const s = list[firstAfter(list, time - near)];
  return s && s.start <= time + near ? s : undefined;
}
