// Punchlist beside opencode: when the agent stops while its list has open items, it is sent back to it.
//
// `punchlist install opencode` wrote this file, and `punchlist uninstall opencode` takes it away again.
//
// opencode tells a plugin that a session is idle, but has no way to say "not yet": going on means to send a
// prompt, and nothing in opencode counts those. So this file decides nothing about the list, which
// `punchlist hook` does, and only sees to it that asking can never become a loop:
//   - at most MOST prompts in a row; only a person's own message starts the count again;
//   - none after the person pressed Esc, and none after an error;
//   - none for the sessions of subagents, and one question at a time;
//   - whatever goes wrong with punchlist (missing, slow, broken), the session goes on as if it were not there.

import { spawn } from "node:child_process"

// The installer writes its own command here: the program and its first arguments.
const COMMAND = ["punchlist"]

const MOST = 10
const SECONDS = 20
const LONGEST_ANSWER = 1_000_000
const LONGEST_TEXT = 20_000

/** What `punchlist hook EVENT` answers; nothing, if it cannot be asked. It never throws. */
function ask(event, input) {
  return new Promise((resolve) => {
    let child
    let timer
    let answer = ""
    const end = (text) => {
      clearTimeout(timer)
      try {
        resolve(JSON.parse(text) ?? {})
      } catch {
        resolve({})
      }
    }
    try {
      const [program, ...first] = COMMAND
      const options = { cwd: input.cwd, stdio: ["pipe", "pipe", "ignore"] }
      child = spawn(program, [...first, "hook", event, "--for", "opencode"], options)
      child.on("error", () => end(""))
      child.on("close", (code) => end(code === 0 ? answer : ""))
      child.stdout.on("data", (piece) => {
        answer += piece
        if (answer.length > LONGEST_ANSWER) child.kill("SIGKILL")
      })
      child.stdin.on("error", () => {})
      child.stdin.end(JSON.stringify(input))
      timer = setTimeout(() => {
        child.kill("SIGKILL")
        end("")
      }, SECONDS * 1000)
    } catch {
      end("")
    }
  })
}

const said = (parts) =>
  (parts ?? [])
    .filter((part) => part.type === "text")
    .map((part) => part.text)
    .join("\n")

export const Punchlist = async ({ client, directory }) => {
  const sessions = new Map()

  function session(id) {
    if (!sessions.has(id)) {
      sessions.set(id, {
        sent: 0, // prompts of ours since the person's last message
        ours: undefined, // the prompt that is on its way, to know it when it comes back as a message
        halted: false, // the person pressed Esc, or the model failed
        asking: false, // a question to `hook stop` is under way
        reporting: false, // a report to `hook tool` waits to be sent
        spoken: 0, // messages of the person
        as: {}, // the agent and the model that the person's message went to
        notes: [], // what the model is told of the list until the session is idle
        learned: Promise.resolve(), // the notes that a request has to wait for are there
        line: Promise.resolve(), // questions are asked in the order in which things happened
        child: undefined, // a subagent's; not known yet
      })
    }
    return sessions.get(id)
  }

  /** Asks once everything that happened before has been told. */
  function inLine(known, event, input) {
    const answer = known.line.then(() => ask(event, { cwd: directory, ...input }))
    known.line = answer.then(() => {})
    return answer
  }

  async function isChild(id, known) {
    if (known.child === undefined) {
      try {
        const found = await client.session.get({ path: { id } })
        known.child = !found.data || Boolean(found.data.parentID)
      } catch {
        return true
      }
    }
    return known.child
  }

  /** Asks, and notes what the model is to be told. */
  async function learn(known, event, input) {
    const answer = await inLine(known, event, input)
    const note = answer.hookSpecificOutput?.additionalContext
    if (note) known.notes.push(note)
  }

  /** Whether a session that is seen for the first time has just begun, or is gone on with. */
  async function origin(id) {
    try {
      const found = await client.session.messages({ path: { id } })
      return found.data.length > 1 ? "resume" : "startup"
    } catch {
      return "startup"
    }
  }

  function begun(id, known, source) {
    return learn(known, "session-start", { session_id: id, hook_event_name: "SessionStart", source })
  }

  function tell(message) {
    if (message) client.tui?.showToast({ body: { message, variant: "info" } })?.catch?.(() => {})
  }

  async function idle(id) {
    const known = session(id)
    known.notes = []
    if (known.asking || known.halted) return
    known.asking = true
    try {
      const spoken = known.spoken
      if (await isChild(id, known)) return
      const answer = await inLine(known, "stop", {
        session_id: id,
        hook_event_name: "Stop",
        stop_hook_active: known.sent > 0,
        permission_mode: known.as.agent, // its agent "plan" may change nothing
      })
      if (answer.decision !== "block" || !answer.reason) return tell(answer.systemMessage)
      // The person was faster: their message, or their Esc, is what counts.
      if (known.halted || known.spoken !== spoken) return
      if (known.sent >= MOST) return tell(`Punchlist: sent back ${MOST} times in a row; now it is your turn.`)
      known.sent += 1
      known.ours = answer.reason
      const parts = [{ type: "text", text: answer.reason }]
      await client.session.promptAsync({ path: { id }, body: { ...known.as, parts } })
    } finally {
      known.asking = false
    }
  }

  const seen = {
    "session.created": ({ info }) => {
      session(info.id).child = Boolean(info.parentID)
    },
    "session.deleted": ({ info }) => {
      sessions.delete(info.id)
    },
    "session.error": ({ sessionID }) => {
      if (sessionID) session(sessionID).halted = true
    },
    "message.updated": ({ info }) => {
      if (info.role === "assistant" && info.error) session(info.sessionID).halted = true
    },
    "session.idle": ({ sessionID }) => idle(sessionID),
  }

  return {
    event: async ({ event }) => {
      try {
        await seen[event.type]?.(event.properties)
      } catch {
        // As if there were no Punchlist.
      }
    },

    "chat.message": async ({ sessionID }, { message, parts }) => {
      const known = session(sessionID)
      const prompt = said(parts)
      if (known.ours !== undefined && prompt === known.ours) {
        known.ours = undefined
        return
      }
      const first = known.spoken === 0
      known.spoken += 1
      known.sent = 0
      known.halted = false
      known.as = { agent: message?.agent, model: message?.model }
      if (known.child) return
      const input = { session_id: sessionID, hook_event_name: "UserPromptSubmit" }
      known.learned = learn(known, "prompt", { ...input, prompt: prompt.slice(0, LONGEST_TEXT) })
      if (first) known.learned = origin(sessionID).then((source) => begun(sessionID, known, source))
    },

    "tool.execute.after": async ({ tool, sessionID, args }, output) => {
      const known = session(sessionID)
      const todos = tool === "todowrite"
      // One report stands for all the tools that ran while it waited; a list of todos is always told.
      if (known.child || (known.reporting && !todos)) return
      if (!todos) known.reporting = true
      known.line = known.line.then(() => {
        if (!todos) known.reporting = false
      })
      learn(known, "tool", {
        session_id: sessionID,
        hook_event_name: "PostToolUse",
        tool_name: tool,
        tool_input: todos ? args : {},
        tool_response: todos ? String(output?.output ?? "").slice(0, LONGEST_TEXT) : "",
      })
    },

    "experimental.session.compacting": async ({ sessionID }, output) => {
      const known = session(sessionID)
      if (known.child) return
      known.notes = []
      await begun(sessionID, known, "compact")
      output.context.push(...known.notes)
    },

    "experimental.chat.system.transform": async ({ sessionID }, output) => {
      const known = sessions.get(sessionID)
      await known?.learned
      output.system.push(...(known?.notes ?? []))
    },
  }
}
