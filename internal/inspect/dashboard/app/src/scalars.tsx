// The course of losses and other scalar summaries.

import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { getScalars, type Series } from "./api";
import { usePolled } from "./poll";

const colours = 8;

interface Chart {
  tag: string;
  series: Series[];
  steps: boolean; // all points have a step
}

// charts groups the series by tag.
function charts(all: Series[]): Chart[] {
  const out = new Map<string, Chart>();
  for (const s of all) {
    const c = out.get(s.tag) ?? { tag: s.tag, series: [], steps: true };
    c.series.push(s);
    c.steps &&= s.steps.every((step) => step >= 0);
    out.set(s.tag, c);
  }
  return [...out.values()];
}

// table joins the series of a chart at their positions on the x axis.
function table(c: Chart): uPlot.AlignedData {
  return uPlot.join(c.series.map((s) => {
    const x = c.steps ? s.steps : s.times;
    const order = x.map((_, i) => i).sort((a, b) => x[a]! - x[b]! || a - b);
    const kept = order.filter((i, k) => k + 1 === order.length || x[order[k + 1]!] !== x[i]);
    return [kept.map((i) => x[i]!), kept.map((i) => s.values[i] ?? null)] as uPlot.AlignedData;
  }));
}

const last = (s: Series): string => {
  const v = s.values.at(-1);
  return v === null || v === undefined ? "NaN" : v.toPrecision(5);
};

function Plot({ chart, theme }: { chart: Chart; theme: string }) {
  const frame = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(null);
  const [width, setWidth] = useState(400);
  const shape = `${chart.series.map((s) => s.task).join(" ")} ${chart.steps} ${theme} ${width}`;
  useEffect(() => {
    const observer = new ResizeObserver(() => setWidth(frame.current?.clientWidth ?? 400));
    observer.observe(frame.current!);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    const style = getComputedStyle(document.documentElement);
    const colour = (name: string) => style.getPropertyValue(name).trim();
    const axis = { stroke: colour("--muted"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 } };
    const made = new uPlot({
      width, height: 200, scales: { x: { time: !chart.steps } }, legend: { show: false }, cursor: { show: false },
      axes: [axis, { ...axis, size: 62 }],
      series: [{}, ...chart.series.map((s, i) => ({ label: s.task, stroke: colour(`--c${i % colours}`), width: 2, spanGaps: true, points: { show: s.values.length < 20 } }))],
    }, table(chart), frame.current!);
    plot.current = made;
    return () => made.destroy();
  }, [shape]);
  useEffect(() => plot.current?.setData(table(chart)), [chart]);
  const points = Math.max(...chart.series.map((s) => s.values.length));
  return (
    <article>
      <h3>{chart.tag}</h3>
      <div ref={frame} role="img" aria-label={`${chart.tag}: ${points} points of ${chart.series.map((s) => `${s.task}, last ${last(s)}`).join("; ")}`} />
      <ul class="legend">
        {chart.series.map((s, i) => (
          <li key={s.task}>
            <svg width="12" height="12" aria-hidden="true"><rect class={`task-${i % colours}`} width="12" height="12" /></svg> {s.task}: {last(s)}
            {chart.steps && s.steps.length > 0 && ` at step ${s.steps.at(-1)}`}
          </li>
        ))}
      </ul>
    </article>
  );
}

export function Scalars({ theme }: { theme: string }) {
  const { data, error } = usePolled<Series[]>(getScalars);
  const [search, setSearch] = useState("");
  const shown = charts(data ?? []).filter((c) => c.tag.includes(search));
  return (
    <section aria-labelledby="scalars">
      <h2 id="scalars">Scalars</h2>
      {error && <p role="alert" class="bad">{error}</p>}
      {data && data.length === 0 && (
        <p class="note">No summary operation has run yet. Numbers appear here that a graph computes with tf.summary.scalar on a task of Weft.</p>
      )}
      {data && data.length > 0 && (
        <label class="field">Search <input type="search" value={search} onInput={(e) => setSearch((e.target as HTMLInputElement).value)} placeholder="tag" /></label>
      )}
      <div class="cards">{shown.map((c) => <Plot key={c.tag} chart={c} theme={theme} />)}</div>
    </section>
  );
}
