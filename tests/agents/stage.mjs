// A stage for the opencode plugin: node stage.mjs PLUGIN < SCENE
//
// A scene is a list of what happens, in order. What the plugin sends is written to stdout as JSON, in order; each
// prompt of its comes back as a message, as it does in opencode. Nothing else of opencode is here.

import { readFileSync } from "node:fs"
import { pathToFileURL } from "node:url"

const scene = JSON.parse(readFileSync(0, "utf8"))
const { Punchlist } = await import(pathToFileURL(process.argv[2]).href)
const prompts = []
const toasts = []
const told = []
let meanwhile = []

const client = {
  session: {
    get: async ({ path }) => ({ data: { id: path.id, parentID: path.id.startsWith("child") ? "parent" : undefined } }),
    messages: async ({ path }) => ({ data: path.id.startsWith("resumed") ? [{}, {}, {}] : [{}] }),
    promptAsync: async ({ path, body }) => {
      prompts.push({ session: path.id, ...body })
      await plugin["chat.message"]({ sessionID: path.id }, { message: {}, parts: body.parts })
    },
  },
  tui: { showToast: async ({ body }) => toasts.push(body.message) },
}
const plugin = await Punchlist({ client, directory: process.cwd() })

async function happens({ event, message, agent = "build", tool, request, compaction, session = "main" }) {
  if (event) await plugin.event({ event })
  if (message) {
    const parts = [{ type: "text", text: message }]
    await plugin["chat.message"]({ sessionID: session }, { message: { agent }, parts })
  }
  if (tool) await plugin["tool.execute.after"]({ tool, sessionID: session, args: {} }, { output: "" })
  if (request) {
    const output = { system: [] }
    await plugin["experimental.chat.system.transform"]({ sessionID: session }, output)
    told.push(output.system)
  }
  if (compaction) {
    const output = { context: [] }
    await plugin["experimental.session.compacting"]({ sessionID: session }, output)
    told.push(output.context)
  }
}

for (const step of scene) {
  // What does not wait happens while the next step does.
  if (step.meanwhile) meanwhile.push(happens(step))
  else await happens(step)
}
await Promise.all(meanwhile)
process.stdout.write(JSON.stringify({ prompts, toasts, told }))
