"""A gRPC server in Python that answers Predict with TensorFlow, as programs without a model server
have it: threads, and the fastest way to call a signature.

  python -m bench.servingserver MODEL_DIR PORT
"""

import os
import sys
from concurrent import futures

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"


def main(folder, port):
    import grpc
    import tensorflow as tf

    from bench.servingproto import PredictRequest, PredictResponse

    model = tf.saved_model.load(folder)
    signature = model.signatures["serving_default"]
    names = sorted(signature.structured_outputs)

    def predict(request, _):
        inputs = {name: tf.constant(tf.make_ndarray(t)) for name, t in request.inputs.items()}
        outputs = signature(**inputs)
        response = PredictResponse()
        for name in names:
            response.outputs[name].CopyFrom(tf.make_tensor_proto(outputs[name].numpy()))
        return response

    handler = grpc.unary_unary_rpc_method_handler(
        predict, PredictRequest.FromString, PredictResponse.SerializeToString
    )
    server = grpc.server(futures.ThreadPoolExecutor(2 * os.cpu_count()))
    service = "tensorflow.serving.PredictionService"
    server.add_generic_rpc_handlers(
        [grpc.method_handlers_generic_handler(service, {"Predict": handler})]
    )
    server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    print("ready", flush=True)
    server.wait_for_termination()


if __name__ == "__main__":
    main(*sys.argv[1:])
