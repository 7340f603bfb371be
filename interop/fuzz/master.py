"""Sessions through direct calls of MasterService.

TensorFlow's client would reject most invalid graphs itself.
"""

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from tensorflow.core.framework import tensor_pb2
from tensorflow.core.protobuf import config_pb2

_STRING, _BYTES, _INT64, _INT32, _BOOL, _MESSAGE = 9, 12, 3, 5, 8, 11
_OPTIONAL, _REPEATED = 1, 3

# The fields in use. Nested messages that are serialized elsewhere are bytes.
_MESSAGES = {
    "NamedTensor": [("name", 1, _STRING, _OPTIONAL), ("tensor", 2, _BYTES, _OPTIONAL)],
    "CreateSessionRequest": [("graph_def", 1, _BYTES, _OPTIONAL), ("config", 2, _BYTES, _OPTIONAL)],
    "CreateSessionResponse": [("session_handle", 1, _STRING, _OPTIONAL)],
    "RunStepRequest": [
        ("session_handle", 1, _STRING, _OPTIONAL),
        ("feed", 2, "NamedTensor", _REPEATED),
        ("fetch", 3, _STRING, _REPEATED),
        ("store_errors_in_response_body", 7, _BOOL, _OPTIONAL),
    ],
    "RunStepResponse": [
        ("tensor", 1, "NamedTensor", _REPEATED),
        ("status_code", 3, _INT32, _OPTIONAL),
        ("status_error_message", 4, _BYTES, _OPTIONAL),
    ],  # not always UTF-8
    "CloseSessionRequest": [("session_handle", 1, _STRING, _OPTIONAL)],
}


def _classes():
    file = descriptor_pb2.FileDescriptorProto(
        name="interop/fuzz.proto", package="interop", syntax="proto3"
    )
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, number, kind, label in fields:
            added = message.field.add(name=field, number=number, label=label)
            added.type = _MESSAGE if isinstance(kind, str) else kind
            if isinstance(kind, str):
                added.type_name = ".interop." + kind
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName("interop." + name))
        for name in _MESSAGES
    }


_CLASS = _classes()


class Failure(Exception):
    """An error of a server, with the number of its code."""

    def __init__(self, code, text):
        super().__init__(text)
        self.code, self.text = code, text


class Master:
    """The master of one server."""

    def __init__(self, address, seconds):
        unlimited = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
        self.channel, self.seconds = grpc.insecure_channel(address, unlimited), seconds
        self.stubs = {
            method: self.stub(method) for method in ("CreateSession", "RunStep", "CloseSession")
        }

    def stub(self, method):
        answer = _CLASS.get(method + "Response")
        return self.channel.unary_unary(
            "/tensorflow.MasterService/" + method,
            request_serializer=lambda m: m.SerializeToString(),
            response_deserializer=answer.FromString if answer else lambda b: b,
        )

    def begin(self, method, **fields):
        """Starts a call. result returns its response."""
        return self.stubs[method].future(_CLASS[method + "Request"](**fields), timeout=self.seconds)

    def create(self, graph_def):
        """Creates a session without graph optimizers, which would remove nodes that can fail."""
        config = config_pb2.ConfigProto(isolate_session_state=True)
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        config.graph_options.optimizer_options.opt_level = config_pb2.OptimizerOptions.L0
        return self.begin("CreateSession", graph_def=graph_def, config=config.SerializeToString())

    def run(self, handle, feeds, fetches):
        """Starts a step. feeds maps names to serialized TensorProtos."""
        named = [_CLASS["NamedTensor"](name=name, tensor=proto) for name, proto in feeds.items()]
        return self.begin(
            "RunStep",
            session_handle=handle,
            feed=named,
            fetch=fetches,
            store_errors_in_response_body=True,
        )

    def close(self, handle):
        return self.begin("CloseSession", session_handle=handle)


def result(future):
    """Waits for the response of a call."""
    try:
        response = future.result()
    except grpc.RpcError as e:
        raise Failure(e.code().value[0], e.details()) from None
    if getattr(response, "status_code", 0):
        raise Failure(response.status_code, response.status_error_message.decode(errors="replace"))
    return response


def fetched(response, fetches):
    """Returns the fetched TensorProtos of a step."""
    tensors = {t.name: t.tensor for t in response.tensor}
    return [tensor_pb2.TensorProto.FromString(tensors[name]) for name in fetches]
