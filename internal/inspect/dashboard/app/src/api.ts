// The data of the server, and the calls for it. Times are in seconds, sizes in bytes.

export interface Wait {
  task: string;
  address: string;
  call: string;
  silent: string; // why the task does not answer; "" if it lives
}

export interface Step {
  id: string;
  running: number;
  failed: boolean;
  waits: Wait[];
}

export interface Session {
  handle: string;
  owner: string;
  age: number;
  nodes: number;
  steps: Step[];
}

export interface Resource {
  container: string;
  name: string;
  kind: string;
  dtype: string;
  shape: string;
  bytes: number;
  elements: number;
}

// Failure is an error of one or more steps.
export interface Failure {
  last: number; // ms since 1970
  count: number;
  session: string;
  step: string;
  code: string;
  message: string;
  task: string; // on which it arose; "" if on none
}

// Gpu is a GPU device; counts are since it was opened.
export interface Gpu {
  device: string; // "GPU:0"
  description: string;
  inUse: number;
  peak: number;
  limit: number;
  kernels: number;
  kernelTime: number;
  copies: number;
  copied: number;
}

export interface Task {
  name: string; // "ps/0"
  address: string;
  error: string; // why it does not answer; "" if it does
  weft: boolean; // of Weft, not of TensorFlow
  version: string;
  host: string;
  pid: number;
  uptime: number;
  memory: number;
  devices: string[];
  sessions: Session[];
  workerSessions: number;
  resources: Resource[];
  failures: Failure[];
  gpus: Gpu[];
}

export interface Cluster {
  self: string; // the task that has answered
  tasks: Task[];
}

export interface LogLine {
  time: number; // ms since 1970
  level: string;
  message: string;
  fields: [string, string][];
}

export interface Log {
  lines: LogLine[];
  missing: Record<string, string>; // why a task has sent no lines
}

// PlacedNode has the name, the positions of the operation and of the device in the lists of the
// graph, and the positions of the inputs and of the control inputs.
export type PlacedNode = [string, number, number, number[], number[]];

export interface PlacedGraph {
  devices: string[];
  ops: string[];
  nodes: PlacedNode[];
}

// Series is the course of a scalar summary.
export interface Series {
  task: string;
  tag: string;
  times: number[]; // s since 1970
  steps: number[]; // -1 for an unknown step
  values: (number | null)[]; // null for NaN and infinity
}

// TraceEvent is an event of Chrome's trace event format; times are in microseconds.
export interface TraceEvent {
  name: string;
  cat?: string;
  ph: string;
  pid: number;
  tid: number;
  ts: number;
  dur?: number;
  id?: number;
  args?: Record<string, unknown>;
}

export interface Recording {
  summary: string;
  trace: { traceEvents: TraceEvent[] };
}

async function read<T>(response: Response): Promise<T> {
  if (!response.ok) {
    const text = (await response.text()).trim();
    throw new Error(text || `${response.status} ${response.statusText}`);
  }
  return (await response.json()) as T;
}

export async function getCluster(signal: AbortSignal): Promise<Cluster> {
  return read(await fetch("api/cluster", { signal }));
}

export async function getLog(level: string, lines: number, signal: AbortSignal): Promise<Log> {
  return read(await fetch(`api/log?${new URLSearchParams({ level, lines: String(lines) })}`, { signal }));
}

export async function getGraph(task: string, session: string, signal: AbortSignal): Promise<PlacedGraph> {
  return read(await fetch(`api/graph?${new URLSearchParams({ task, session })}`, { signal }));
}

export async function getScalars(signal: AbortSignal): Promise<Series[]> {
  return read(await fetch("api/scalars", { signal }));
}

export async function record(steps: number, seconds: number, signal: AbortSignal): Promise<Recording> {
  const body = JSON.stringify({ steps, seconds });
  const headers = { "Content-Type": "application/json" };
  return read(await fetch("api/recordings", { method: "POST", headers, body, signal }));
}
