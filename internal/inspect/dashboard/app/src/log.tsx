// The last lines of the logs of all tasks.

import { useState } from "preact/hooks";
import { getLog, type Log as Lines, type LogLine } from "./api";
import { usePolled } from "./poll";

const levels = ["debug", "info", "warn", "error"];

const clock = (ms: number): string => new Date(ms).toISOString().slice(11, 23);

const task = (l: LogLine): string => (l.fields.find((f) => f[0] === "task")?.[1] ?? "").replace(/^\/job:([^/]+)\/replica:\d+\/task:(\d+)$/, "$1/$2");

function Line({ line }: { line: LogLine }) {
  return (
    <tr class={line.level}>
      <td title={new Date(line.time).toISOString()}>{clock(line.time)}</td>
      <td><span class={`level ${line.level}`}>{line.level}</span></td>
      <td>{task(line)}</td>
      <td class="message">
        {line.message}
        {line.fields.filter((f) => f[0] !== "task").map(([name, value]) => <span key={name} class="log-field"> <span class="note">{name}=</span>{value}</span>)}
      </td>
    </tr>
  );
}

export function Log() {
  const [level, setLevel] = useState("info");
  const [search, setSearch] = useState("");
  const { data, error } = usePolled<Lines>((signal) => getLog(level, 200, signal), level);
  const text = search.toLowerCase();
  const lines = (data?.lines ?? []).filter((l) => text === "" || JSON.stringify(l).toLowerCase().includes(text)).reverse();
  return (
    <section aria-labelledby="log">
      <h2 id="log">Log</h2>
      <div class="tools">
        <label class="field">At least <select value={level} onChange={(e) => setLevel((e.target as HTMLSelectElement).value)}>
          {levels.map((l) => <option key={l} value={l}>{l}</option>)}
        </select></label>
        <label class="field">Search <input type="search" value={search} onInput={(e) => setSearch((e.target as HTMLInputElement).value)} placeholder="text, task, session" /></label>
        <span class="note">The newest line is first; times are UTC.</span>
      </div>
      {error && <p role="alert" class="bad">{error}</p>}
      {Object.entries(data?.missing ?? {}).map(([name, why]) => <p key={name} class="bad">{name} has sent no lines: {why}</p>)}
      {data && lines.length === 0 && <p class="note">No lines.</p>}
      {lines.length > 0 && (
        <div class="scroll" tabIndex={0} role="region" aria-label="Lines of the log">
          <table class="log">
            <thead><tr><th scope="col">Time</th><th scope="col">Level</th><th scope="col">Task</th><th scope="col">Message</th></tr></thead>
            <tbody>{lines.map((l, i) => <Line key={`${l.time} ${lines.length - i}`} line={l} />)}</tbody>
          </table>
        </div>
      )}
    </section>
  );
}
