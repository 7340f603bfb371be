import io.grpc.CallOptions;
import io.grpc.ManagedChannel;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.protobuf.ProtoUtils;
import io.grpc.stub.ClientCalls;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.Collections;
import weft.tensorflow.Tensor.TensorProto;
import weft.tensorflow.Tensor.TensorShapeProto;
import weft.tensorflow.Types.DataType;
import weft.tensorflow.serving.Model.GetModelStatusRequest;
import weft.tensorflow.serving.Model.GetModelStatusResponse;
import weft.tensorflow.serving.Model.ModelVersionStatus;
import weft.tensorflow.serving.Prediction.ModelSpec;
import weft.tensorflow.serving.Prediction.PredictRequest;
import weft.tensorflow.serving.Prediction.PredictResponse;

/** Asks a model server for the model of "weft demo", over gRPC and HTTP. Arguments: both ports. */
public final class Client {
  private static final int PIXELS = 784;

  /** Makes a call. The messages have the wire format of TensorFlow Serving's. */
  private static <Q extends com.google.protobuf.Message, A extends com.google.protobuf.Message> A call(
      ManagedChannel channel, String method, Q request, A answer) {
    @SuppressWarnings("unchecked")
    MethodDescriptor<Q, A> descriptor =
        MethodDescriptor.<Q, A>newBuilder()
            .setType(MethodDescriptor.MethodType.UNARY)
            .setFullMethodName("tensorflow.serving." + method)
            .setRequestMarshaller(ProtoUtils.marshaller((Q) request.getDefaultInstanceForType()))
            .setResponseMarshaller(ProtoUtils.marshaller(answer))
            .build();
    return ClientCalls.blockingUnaryCall(channel, descriptor, CallOptions.DEFAULT, request);
  }

  private static void check(boolean holds, Object got) {
    if (!holds) {
      throw new AssertionError(String.valueOf(got));
    }
  }

  public static void main(String[] args) throws Exception {
    ManagedChannel channel =
        NettyChannelBuilder.forAddress("127.0.0.1", Integer.parseInt(args[0])).usePlaintext().build();
    ModelSpec model = ModelSpec.newBuilder().setName("model").build();
    GetModelStatusResponse status =
        call(channel, "ModelService/GetModelStatus", GetModelStatusRequest.newBuilder().setModelSpec(model).build(),
            GetModelStatusResponse.getDefaultInstance());
    check(status.getModelVersionStatus(0).getState() == ModelVersionStatus.State.AVAILABLE, status);

    TensorShapeProto.Builder shape = TensorShapeProto.newBuilder();
    shape.addDimBuilder().setSize(2);
    shape.addDimBuilder().setSize(PIXELS);
    TensorProto x =
        TensorProto.newBuilder()
            .setDtype(DataType.DT_FLOAT)
            .setTensorShape(shape)
            .addAllFloatVal(Collections.nCopies(2 * PIXELS, 0.5f))
            .build();
    String input = args[2];
    PredictResponse answer =
        call(channel, "PredictionService/Predict",
            PredictRequest.newBuilder().setModelSpec(model).putInputs(input, x).build(), PredictResponse.getDefaultInstance());
    TensorProto y = answer.getOutputsMap().values().iterator().next();
    float sum = 0;
    for (float v : y.getFloatValList()) {
      sum += v;
    }
    check(y.getFloatValCount() == 20 && Math.abs(sum - 2) < 1e-4, answer);
    try {
      call(channel, "PredictionService/Predict",
          PredictRequest.newBuilder().setModelSpec(ModelSpec.newBuilder().setName("none")).build(), PredictResponse.getDefaultInstance());
      throw new AssertionError("an unknown model answers");
    } catch (StatusRuntimeException e) {
      check(e.getStatus().getCode() == Status.Code.NOT_FOUND, e);
      check("Servable not found for request: Latest(none)".equals(e.getStatus().getDescription()), e);
    }
    channel.shutdownNow();

    String row = "{\"instances\": [" + Collections.nCopies(PIXELS, "0.5") + "]}";
    HttpResponse<String> json =
        HttpClient.newHttpClient()
            .send(
                HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + args[1] + "/v1/models/model:predict"))
                    .POST(HttpRequest.BodyPublishers.ofString(row))
                    .build(),
                HttpResponse.BodyHandlers.ofString());
    check(json.statusCode() == 200 && json.body().contains("\"predictions\""), json.body());
    System.out.println("ok: Java over gRPC and HTTP");
  }
}
