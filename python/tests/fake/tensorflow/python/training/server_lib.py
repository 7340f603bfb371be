"""A module with the names of TensorFlow's server_lib, and messages that can only be written."""

c_api = None


class Message(object):
    """A protocol buffer message. Fields are numbered in the order of the keyword arguments."""

    def __init__(self, *fields):
        self.fields = fields  # (number, int, str or Message)

    def SerializeToString(self):
        return b"".join(map(field, self.fields))


def field(numbered):
    number, value = numbered
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.SerializeToString() if isinstance(value, Message) else value.encode()
    return varint(number << 3 | 2) + varint(len(data)) + data


def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


class JobDef(Message):
    def __init__(self, name, tasks):
        self.name, self.tasks = name, tasks
        entries = [(2, Message((1, k), (2, v))) for k, v in sorted(tasks.items())]
        Message.__init__(self, (1, name), *entries)


class ClusterDef(Message):
    def __init__(self, jobs):
        self.job = [JobDef(name, dict(enumerate(jobs[name]))) for name in sorted(jobs)]
        Message.__init__(self, *[(1, j) for j in self.job])


class ServerDef(Message):
    def __init__(self, cluster, job_name, task_index, protocol, cpus):
        self.cluster, self.job_name, self.task_index = ClusterDef(cluster), job_name, task_index
        fields = [(1, self.cluster), (2, job_name), (3, task_index)]
        if cpus:
            fields.append((4, Message((1, Message((1, "CPU"), (2, cpus))))))
        Message.__init__(self, *fields + [(5, protocol)])


def _make_server_def(server_or_cluster_def, job_name, task_index, protocol, config):
    if job_name is None:
        (job_name,) = server_or_cluster_def
    return ServerDef(server_or_cluster_def, job_name, task_index or 0, protocol or "grpc", config)


class Server(object):
    """A server of a task."""

    def __init__(
        self,
        server_or_cluster_def,
        job_name=None,
        task_index=None,
        protocol=None,
        config=None,
        start=True,
    ):
        """Creates a new server."""
        raise AssertionError("TensorFlow's server was created")

    def start(self):
        """Starts this server."""

    def join(self):
        """Blocks until the server has shut down."""

    @property
    def server_def(self):
        return self._server_def

    @property
    def target(self):
        """Returns the target of a session."""

    @staticmethod
    def create_local_server(config=None, start=True):
        return Server({"local": ["localhost:0"]}, protocol="grpc", config=config, start=start)
