// A session of the Vercel AI SDK, on chat completions, streamed: node vercel.mjs NODE_MODULES MODEL PROMPT.
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";

const [modules, model, prompt] = process.argv.slice(2);
// An import looks beside this file; the client is installed elsewhere.
const require = createRequire(`${modules}/`);
const { streamText, tool, stepCountIs } = require("ai");
const { createOpenAICompatible } = require("@ai-sdk/openai-compatible");
const { z } = require("zod");

const provider = createOpenAICompatible({
  name: "proxy",
  baseURL: process.env.OPENAI_BASE_URL,
  apiKey: process.env.OPENAI_API_KEY,
  includeUsage: true,
});
const read_file = tool({
  description: "Read a file and return its text.",
  inputSchema: z.object({ path: z.string() }),
  execute: ({ path }) => readFile(path, "utf-8"),
});
const answer = streamText({
  model: provider(model),
  system: "You are a careful reviewer.",
  prompt,
  tools: { read_file },
  stopWhen: stepCountIs(50),
});
console.log(await answer.text);
