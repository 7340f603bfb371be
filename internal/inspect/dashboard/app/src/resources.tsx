// Variables, queues and tables by task.

import { useMemo, useState } from "preact/hooks";
import type { Cluster, Resource, Task } from "./api";
import { bytes, count } from "./format";

const shown = 500; // rows of a table; the filter finds the others
const few = 500; // resources of all tasks that are listed without being asked for

function Table({ resources }: { resources: Resource[] }) {
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">Name</th>
          <th scope="col">Kind</th>
          <th scope="col">Type</th>
          <th scope="col">Shape</th>
          <th scope="col" class="number">Size</th>
        </tr>
      </thead>
      <tbody>
        {resources.slice(0, shown).map((r) => (
          <tr key={`${r.container}/${r.kind}/${r.name}`}>
            <th scope="row" title={`container ${r.container}`}>{r.name}</th>
            <td>{r.kind}</td>
            <td>{r.dtype}</td>
            <td>{r.shape}</td>
            <td class="number">{r.kind === "queue" ? count(r.elements, "element") : r.bytes > 0 ? bytes(r.bytes) : ""}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

// TaskResources is the list of a task, which the user opens if there are many.
function TaskResources({ task, resources, open }: { task: Task; resources: Resource[]; open: boolean }) {
  const [asked, setAsked] = useState<boolean>();
  const visible = asked ?? open;
  return (
    <details open={visible} onToggle={(e) => setAsked((e.currentTarget as HTMLDetailsElement).open)}>
      <summary>
        <strong>{task.name}</strong>{" "}
        <span class="note">{count(resources.length, "resource")}, {bytes(resources.reduce((sum, r) => sum + r.bytes, 0))}</span>
      </summary>
      {visible && (
        <>
          <div class="scroll" tabIndex={0} role="region" aria-label={`Resources of ${task.name}`}>
            <Table resources={resources} />
          </div>
          {resources.length > shown && <p class="note">The first {shown} are shown. The filter finds the others.</p>}
        </>
      )}
    </details>
  );
}

export function Resources({ cluster }: { cluster: Cluster }) {
  const [filter, setFilter] = useState("");
  const found = useMemo(() => {
    const want = filter.toLowerCase();
    return cluster.tasks
      .map((task) => ({ task, resources: task.resources.filter((r) => r.name.toLowerCase().includes(want)) }))
      .filter((t) => t.resources.length > 0);
  }, [cluster, filter]);
  const total = found.reduce((sum, t) => sum + t.resources.length, 0);
  return (
    <section aria-labelledby="resources">
      <h2 id="resources">Variables and queues</h2>
      <label class="field">
        Filter by name{" "}
        <input type="search" value={filter} onInput={(e) => setFilter((e.target as HTMLInputElement).value)} />
      </label>
      {found.length === 0 && <p class="note">{filter ? "No name contains the filter." : "No task has variables or queues."}</p>}
      {found.map(({ task, resources }) => (
        <TaskResources key={task.name} task={task} resources={resources} open={total <= few} />
      ))}
    </section>
  );
}
