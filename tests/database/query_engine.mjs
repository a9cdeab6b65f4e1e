#!/usr/bin/env node
// Prisma's query engine as a process that LiteLLM's database client starts: prisma-client-python talks GraphQL over HTTP to it.
//
// The engine is Prisma's own, of the commit that the client expects, in its WebAssembly build: that one is a package, while the
// native program is downloaded from Prisma's host at installation. It has the same core, reads Prisma's JSON protocol only, and
// reaches PostgreSQL through Prisma's adapter for `pg`; this file translates the one protocol into the other.

import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { parseArgs } from "node:util";
import { PrismaPg } from "@prisma/adapter-pg";
import { bindAdapter } from "@prisma/driver-adapter-utils";
import * as bindings from "@prisma/query-engine-wasm/postgresql/query_engine_bg.js";
import { parse, valueFromASTUntyped } from "graphql";
import pg from "pg";

const TRACE = "{}";
const OPERATION =
  /^(findUnique|findFirst|findMany|createOne|createMany|updateOne|updateMany|upsertOne|deleteOne|deleteMany|aggregate|groupBy|queryRaw|executeRaw)(.*?)(OrThrow)?$/;
const JSON_OPERATORS = new Set(["equals", "not", "array_contains", "array_starts_with", "array_ends_with"]);

const binary = createRequire(import.meta.url).resolve("@prisma/query-engine-wasm/postgresql/query_engine_bg.wasm");
const { instance } = await WebAssembly.instantiate(readFileSync(binary), { "./query_engine_bg.js": bindings });
bindings.__wbg_set_wasm(instance.exports);

const { values: options } = parseArgs({
  options: { version: { type: "boolean" }, port: { type: "string", short: "p" } },
  strict: false,
});
if (options.version) {
  console.log(`query-engine ${bindings.getBuildTimeInfo().commit}`);
  process.exit();
}

const datamodel = readFileSync(process.env.PRISMA_DML_PATH, "utf8");
const [override] = JSON.parse(process.env.OVERWRITE_DATASOURCES ?? "[]");
const pool = new pg.Pool({ connectionString: override?.url ?? process.env.DATABASE_URL });
const settings = { datamodel, logLevel: "error", logQueries: false };
const engine = new bindings.QueryEngine(settings, (line) => console.error(line), bindAdapter(new PrismaPg(pool)));
await engine.connect(TRACE);

/** The type of each field of each model: in GraphQL's text a value for JSON is a string like any other. */
const fieldTypes = new Map(
  Array.from(datamodel.matchAll(/^model (\w+) \{([^]*?)^\}/gm), ([, model, body]) => [
    model,
    new Map(Array.from(body.matchAll(/^\s+(\w+)\s+(\w+)/gm), ([, field, type]) => [field, type])),
  ]),
);

const mapped = (object, change) => Object.fromEntries(Object.entries(object).map(([key, value]) => [key, change(key, value)]));

/** Mark the strings that are JSON, in the arguments of a query of `model`. */
function marked(model, value) {
  if (Array.isArray(value)) return value.map((item) => marked(model, item));
  if (value === null || typeof value !== "object") return value;
  return mapped(value, (key, inner) => {
    const type = fieldTypes.get(model)?.get(key);
    if (type !== "Json") return marked(fieldTypes.has(type) ? type : model, inner);
    if (typeof inner === "string") return { $type: "Json", value: inner };
    // `data` is the argument of a mutation as well as some models' field.
    return key === "data" || inner === null ? marked(model, inner) : markedFilter(inner);
  });
}

function markedFilter(filter) {
  return mapped(filter, (key, value) => {
    if (key === "not" && typeof value === "object") return markedFilter(value);
    return JSON_OPERATORS.has(key) ? { $type: "Json", value } : value;
  });
}

function query(model, field) {
  const given = Object.fromEntries(field.arguments.map((argument) => [argument.name.value, valueFromASTUntyped(argument.value)]));
  const selected = (field.selectionSet?.selections ?? []).map((inner) => [
    inner.name.value,
    inner.selectionSet ? query(fieldTypes.get(model)?.get(inner.name.value), inner) : true,
  ]);
  return { arguments: marked(model, given), selection: Object.fromEntries(selected) };
}

/** Translate the text of one GraphQL query into Prisma's JSON protocol. */
function translated(text) {
  const field = parse(text).definitions[0].selectionSet.selections[0];
  const [, action, model, orThrow = ""] = OPERATION.exec(field.name.value);
  return { modelName: model || undefined, action: action + orThrow, query: query(model, field) };
}

/** Take the types off the values of a result, which GraphQL's answers do not have. */
function untyped(value) {
  if (Array.isArray(value)) return value.map(untyped);
  if (value === null || typeof value !== "object") return value;
  return "$type" in value ? value.value : mapped(value, (_, inner) => untyped(inner));
}

/** Return a result under the name that the client gives it. Rows of raw SQL stay as they are. */
function answer(result) {
  if (!result.data) return result;
  const [[name, data]] = Object.entries(result.data);
  return { ...result, data: { result: name.endsWith("Raw") ? data : untyped(data) } };
}

async function answered(request, body) {
  const [, first, id, verb] = request.url.split("/");
  if (first === "status") return { status: "ok" };
  if (first === "transaction") {
    const said = id === "start" ? await engine.startTransaction(body, TRACE) : await engine[`${verb}Transaction`](id, TRACE);
    return JSON.parse(said || "{}");
  }
  const asked = JSON.parse(body);
  const sent = asked.batch
    ? { batch: asked.batch.map((one) => translated(one.query)), transaction: asked.transaction ? {} : undefined }
    : translated(asked.query);
  const result = JSON.parse(await engine.query(JSON.stringify(sent), TRACE, request.headers["x-transaction-id"]));
  return asked.batch ? { ...result, batchResult: result.batchResult?.map(answer) } : answer(result);
}

const server = createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  try {
    const found = await answered(request, Buffer.concat(chunks).toString());
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(found));
  } catch (error) {
    console.error(request.url, error);
    response.writeHead(500).end(String(error));
  }
});
server.listen(Number(options.port), "localhost");
