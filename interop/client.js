// Calls a server with gRPC's library for Node: its health service, and what it does not have.
//
//   NODE_PATH=.tmp/node/node_modules node interop/client.js HOST:PORT
"use strict";
const grpc = require("@grpc/grpc-js");

const bytes = (b) => b;
const client = new grpc.Client(process.argv[2], grpc.credentials.createInsecure());

function call(path, request, options = {}) {
  return new Promise((resolve) => {
    client.makeUnaryRequest(path, bytes, bytes, request, new grpc.Metadata(), options, (error, reply) =>
      resolve(error ? `error ${error.code}: ${error.details}` : reply.toString("hex")),
    );
  });
}

(async () => {
  console.log("check", await call("/grpc.health.v1.Health/Check", Buffer.alloc(0)));
  console.log("method", await call("/tensorflow.MasterService/Other", Buffer.alloc(0)));
  console.log("request", await call("/tensorflow.MasterService/CloseSession", Buffer.from("0a0178", "hex")));
  console.log("large", await call("/tensorflow.MasterService/CloseSession", Buffer.alloc(1 << 20, 0xff)));
  console.log("deadline", await call("/tensorflow.WorkerService/CompleteGroup", Buffer.alloc(0), { deadline: Date.now() - 1 }));
  client.close();
})();
