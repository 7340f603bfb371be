"""The messages of TensorFlow Serving's Predict, on TensorFlow's own TensorProto."""

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from tensorflow.core.framework import tensor_pb2

Field = descriptor_pb2.FieldDescriptorProto


def _messages():
    file = descriptor_pb2.FileDescriptorProto(
        name="bench/predict.proto",
        package="bench.serving",
        syntax="proto3",
        dependency=[tensor_pb2.DESCRIPTOR.name],
    )

    def message(name, *fields):
        m = file.message_type.add(name=name)
        for number, field, kind, of in fields:
            label = Field.LABEL_OPTIONAL
            if kind == "map":
                entry = "".join(part.capitalize() for part in field.split("_")) + "Entry"
                e = m.nested_type.add(name=entry)
                e.options.map_entry = True
                e.field.add(name="key", number=1, type=Field.TYPE_STRING, label=label)
                e.field.add(
                    name="value", number=2, type=Field.TYPE_MESSAGE, type_name=of, label=label
                )
                label, of = Field.LABEL_REPEATED, f".bench.serving.{name}.{entry}"
            m.field.add(
                name=field,
                number=number,
                label=label,
                type=Field.TYPE_MESSAGE if of else Field.TYPE_STRING,
                type_name=of,
            )

    tensor = ".tensorflow.TensorProto"
    message("ModelSpec", (1, "name", "", None))
    spec = ".bench.serving.ModelSpec"
    message("PredictRequest", (1, "model_spec", "", spec), (2, "inputs", "map", tensor))
    message("PredictResponse", (2, "model_spec", "", spec), (1, "outputs", "map", tensor))
    pool = descriptor_pool.Default()
    pool.Add(file)
    return [
        message_factory.GetMessageClass(pool.FindMessageTypeByName("bench.serving." + name))
        for name in ("PredictRequest", "PredictResponse")
    ]


PredictRequest, PredictResponse = _messages()
