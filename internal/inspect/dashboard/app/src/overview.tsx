// The tasks of the cluster, and the steps that run, with what they wait for.

import type { Cluster, Session, Step, Task } from "./api";
import { bytes, count, duration } from "./format";

function state(t: Task): { text: string; kind: string } {
  if (t.error) return { text: "silent", kind: "bad" };
  if (!t.weft) return { text: "TensorFlow", kind: "other" };
  return { text: "up", kind: "good" };
}

function TaskRow({ task, self }: { task: Task; self: boolean }) {
  const s = state(task);
  const variables = task.resources.filter((r) => r.kind === "variable");
  const size = variables.reduce((sum, r) => sum + r.bytes, 0);
  const steps = task.sessions.reduce((sum, s) => sum + s.steps.length, 0);
  return (
    <tr class={s.kind}>
      <th scope="row">
        {task.name}
        {self && <span class="note"> (this task)</span>}
      </th>
      <td>{task.address}</td>
      <td>
        <span class={`state ${s.kind}`}>{s.text}</span>
      </td>
      {task.error || !task.weft ? (
        <td colSpan={7}>{task.error || count(task.devices.length, "device")}</td>
      ) : (
        <>
          <td class="number">{duration(task.uptime)}</td>
          <td class="number">{bytes(task.memory)}</td>
          <td title={task.devices.join("\n")} class="number">
            {task.devices.length}
          </td>
          <td class="number">{task.sessions.length}</td>
          <td class="number">{steps}</td>
          <td class="number">
            {variables.length} ({bytes(size)})
          </td>
          <td title={`${task.host}, process ${task.pid}`}>{task.version}</td>
        </>
      )}
    </tr>
  );
}

function Gpus({ cluster }: { cluster: Cluster }) {
  const gpus = cluster.tasks.flatMap((t) => t.gpus.map((g) => ({ ...g, task: t.name })));
  if (gpus.length === 0) return null;
  return (
    <section aria-labelledby="gpus">
      <h2 id="gpus">GPU devices</h2>
      <div class="scroll" tabIndex={0} role="region" aria-label="Table of GPU devices">
        <table>
          <thead>
            <tr>
              <th scope="col">Device</th>
              <th scope="col" class="number">Memory in use</th>
              <th scope="col" class="number">Peak</th>
              <th scope="col" class="number">Limit</th>
              <th scope="col" class="number">Kernels</th>
              <th scope="col" class="number">Kernel time</th>
              <th scope="col" class="number">Copies</th>
              <th scope="col" class="number">Copied</th>
            </tr>
          </thead>
          <tbody>
            {gpus.map((g) => (
              <tr key={g.task + g.device}>
                <th scope="row" title={g.description}>
                  {g.task} {g.device}
                </th>
                <td class="number">{bytes(g.inUse)}</td>
                <td class="number">{bytes(g.peak)}</td>
                <td class="number">{bytes(g.limit)}</td>
                <td class="number">{g.kernels}</td>
                <td class="number">{duration(g.kernelTime)}</td>
                <td class="number">{g.copies}</td>
                <td class="number">{bytes(g.copied)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Waits({ step }: { step: Step }) {
  if (step.waits.length === 0) return <p class="note">All tasks have answered.</p>;
  return (
    <ul class="waits">
      {step.waits.map((w) => (
        <li key={w.task} class={w.silent ? "bad" : ""}>
          <strong>{w.task}</strong>
          {w.address && ` at ${w.address}`}: {w.call};{" "}
          {w.silent ? <em>does not answer: {w.silent}</em> : "answers, unfinished"}
        </li>
      ))}
    </ul>
  );
}

function SessionCard({ task, session }: { task: Task; session: Session }) {
  return (
    <article>
      <h3>
        Session {session.handle}… at {task.name}
      </h3>
      <p>
        {count(session.nodes, "node")}, open for {duration(session.age)}
        {session.owner && `, of ${session.owner}`}
      </p>
      {session.steps.length === 0 && <p class="note">No step is running.</p>}
      {session.steps.map((step) => (
        <section key={step.id} class={step.failed || step.waits.some((w) => w.silent) ? "step bad" : "step"}>
          <h4>
            Step {step.id}, {step.failed ? "failed, still running" : "running"}
            {step.running > 0 ? ` for at least ${duration(step.running)}` : ""}, waits for:
          </h4>
          <Waits step={step} />
        </section>
      ))}
    </article>
  );
}

function Failures({ cluster }: { cluster: Cluster }) {
  const failures = cluster.tasks.flatMap((t) => t.failures.map((f) => ({ ...f, master: t.name })));
  failures.sort((a, b) => b.last - a.last);
  return (
    <section aria-labelledby="errors">
      <h2 id="errors">Recent errors of steps</h2>
      {failures.length === 0 && <p class="note">No step has failed.</p>}
      <div class="cards">
        {failures.slice(0, 20).map((f) => (
          <article key={f.master + f.session + f.code + f.message}>
            <h3>
              <span class="state bad">{f.code}</span>
              {f.task && ` on ${f.task}`}
            </h3>
            <p class="error-text">{f.message}</p>
            <p class="note">
              {new Date(f.last).toISOString().slice(0, 19).replace("T", " ")} UTC, step {f.step} of session {f.session}… at {f.master}
              {f.count > 1 && `, ${f.count} times`}
            </p>
          </article>
        ))}
      </div>
    </section>
  );
}

export function Overview({ cluster }: { cluster: Cluster }) {
  const sessions = cluster.tasks.flatMap((task) => task.sessions.map((session) => ({ task, session })));
  return (
    <>
      <section aria-labelledby="tasks">
        <h2 id="tasks">Tasks</h2>
        <div class="scroll" tabIndex={0} role="region" aria-label="Table of tasks">
          <table>
            <thead>
              <tr>
                <th scope="col">Task</th>
                <th scope="col">Address</th>
                <th scope="col">State</th>
                <th scope="col" class="number">Up</th>
                <th scope="col" class="number">Memory</th>
                <th scope="col" class="number">Devices</th>
                <th scope="col" class="number">Sessions</th>
                <th scope="col" class="number">Steps</th>
                <th scope="col" class="number">Variables</th>
                <th scope="col">Version</th>
              </tr>
            </thead>
            <tbody>
              {cluster.tasks.map((t) => (
                <TaskRow key={t.name} task={t} self={t.name === cluster.self} />
              ))}
            </tbody>
          </table>
        </div>
      </section>
      <Gpus cluster={cluster} />
      <section aria-labelledby="sessions">
        <h2 id="sessions">Sessions and running steps</h2>
        {sessions.length === 0 && <p class="note">No client has a session.</p>}
        <div class="cards">
          {sessions.map(({ task, session }) => (
            <SessionCard key={task.name + session.handle} task={task} session={session} />
          ))}
        </div>
      </section>
      <Failures cluster={cluster} />
    </>
  );
}
