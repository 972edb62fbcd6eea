// Punchlist for opencode: continues a session that stops while its list has open items.
//
// `punchlist install opencode` writes this file, and `punchlist uninstall opencode` removes it.
//
// opencode reports that a session is idle, but a plugin can only continue it by sending a prompt, and opencode does not
// count these prompts. `punchlist hook` makes the decisions; this file ensures that they cannot become a loop:
//   - at most MAX_PROMPTS prompts in a row; only a message of the person resets the count;
//   - no prompt after the person pressed Esc, and none after an error;
//   - no prompt for sessions of subagents, and one question to the hook at a time;
//   - if punchlist is missing, slow or broken, the session continues as if it were not installed.

import { spawn } from "node:child_process"

// The installer replaces this line: the program and its first arguments.
const COMMAND = ["punchlist"]

const MAX_PROMPTS = 10
const TIMEOUT_SECONDS = 20
const MAX_ANSWER_LENGTH = 1_000_000
const MAX_TEXT_LENGTH = 20_000

/** The reply of `punchlist hook EVENT`; empty if it fails. Never throws. */
function runHook(event, input) {
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
        if (answer.length > MAX_ANSWER_LENGTH) child.kill("SIGKILL")
      })
      child.stdin.on("error", () => {})
      child.stdin.end(JSON.stringify(input))
      timer = setTimeout(() => {
        child.kill("SIGKILL")
        end("")
      }, TIMEOUT_SECONDS * 1000)
    } catch {
      end("")
    }
  })
}

/** The short texts among the arguments of a tool, which describe its call. */
const briefly = (args) =>
  Object.fromEntries(
    Object.entries(args ?? {})
      .filter(([, value]) => typeof value === "string")
      .map(([name, value]) => [name, value.slice(0, 300)]),
  )

const textOf = (parts) =>
  (parts ?? [])
    .filter((part) => part.type === "text")
    .map((part) => part.text)
    .join("\n")

export const Punchlist = async ({ client, directory }) => {
  const sessions = new Map()

  function session(id) {
    if (!sessions.has(id)) {
      sessions.set(id, {
        prompts: 0, // our prompts since the person's last message
        ownPrompt: undefined, // our last prompt, to recognise it when it returns as a message
        halted: false, // the person pressed Esc, or the model failed
        stopping: false, // `hook stop` is running
        reporting: false, // a call of `hook tool` is queued
        messages: 0, // messages of the person
        target: {}, // the agent and the model of the person's last message
        notes: [], // context for the model until the session is idle
        ready: Promise.resolve(), // resolves when the notes for the next request have arrived
        queue: Promise.resolve(), // hooks run in the order of the events
        child: undefined, // whether it is a subagent's session; undefined if unknown
      })
    }
    return sessions.get(id)
  }

  /** Runs a hook after those of all earlier events. */
  function enqueue(state, event, input) {
    const answer = state.queue.then(() => runHook(event, { cwd: directory, ...input }))
    state.queue = answer.then(() => {})
    return answer
  }

  async function isChild(id, state) {
    if (state.child === undefined) {
      try {
        const found = await client.session.get({ path: { id } })
        state.child = !found.data || Boolean(found.data.parentID)
      } catch {
        return true
      }
    }
    return state.child
  }

  /** Runs a hook and keeps its context for the model. */
  async function addNotes(state, event, input) {
    const answer = await enqueue(state, event, input)
    const note = answer.hookSpecificOutput?.additionalContext
    if (note) state.notes.push(note)
  }

  /** Whether a session that is seen for the first time is new or resumed. */
  async function sessionSource(id) {
    try {
      const found = await client.session.messages({ path: { id } })
      return found.data.length > 1 ? "resume" : "startup"
    } catch {
      return "startup"
    }
  }

  function sessionStarted(id, state, source) {
    return addNotes(state, "session-start", { session_id: id, hook_event_name: "SessionStart", source })
  }

  function showToast(message) {
    if (message) client.tui?.showToast({ body: { message, variant: "info" } })?.catch?.(() => {})
  }

  async function idle(id) {
    const state = session(id)
    state.notes = []
    if (state.stopping || state.halted) return
    state.stopping = true
    try {
      const messages = state.messages
      if (await isChild(id, state)) return
      const answer = await enqueue(state, "stop", {
        session_id: id,
        hook_event_name: "Stop",
        stop_hook_active: state.prompts > 0,
        permission_mode: state.target.agent, // opencode's agent "plan" may not change anything
      })
      if (answer.decision !== "block" || !answer.reason) return showToast(answer.systemMessage)
      // A message or an Esc of the person that arrived meanwhile takes precedence.
      if (state.halted || state.messages !== messages) return
      if (state.prompts >= MAX_PROMPTS) return showToast(`Punchlist: continued ${MAX_PROMPTS} times in a row, the limit. Send a message to continue.`)
      state.prompts += 1
      state.ownPrompt = answer.reason
      const parts = [{ type: "text", text: answer.reason }]
      await client.session.promptAsync({ path: { id }, body: { ...state.target, parts } })
    } finally {
      state.stopping = false
    }
  }

  const handlers = {
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
        await handlers[event.type]?.(event.properties)
      } catch {
        // The session continues without Punchlist.
      }
    },

    "chat.message": async ({ sessionID }, { message, parts }) => {
      const state = session(sessionID)
      const prompt = textOf(parts)
      if (state.ownPrompt !== undefined && prompt === state.ownPrompt) {
        state.ownPrompt = undefined
        return
      }
      const first = state.messages === 0
      state.messages += 1
      state.prompts = 0
      state.halted = false
      state.target = { agent: message?.agent, model: message?.model }
      if (state.child) return
      const input = { session_id: sessionID, hook_event_name: "UserPromptSubmit" }
      state.ready = addNotes(state, "prompt", { ...input, prompt: prompt.slice(0, MAX_TEXT_LENGTH) })
      if (first) state.ready = sessionSource(sessionID).then((source) => sessionStarted(sessionID, state, source))
    },

    "tool.execute.after": async ({ tool, sessionID, args }, output) => {
      const state = session(sessionID)
      const todos = tool === "todowrite"
      // One queued call counts for all tools that ran meanwhile; a todo list is always reported.
      if (state.child || (state.reporting && !todos)) return
      if (!todos) state.reporting = true
      state.queue = state.queue.then(() => {
        if (!todos) state.reporting = false
      })
      addNotes(state, "tool", {
        session_id: sessionID,
        hook_event_name: "PostToolUse",
        tool_name: tool,
        tool_input: todos ? args : briefly(args),
        tool_response: todos ? String(output?.output ?? "").slice(0, MAX_TEXT_LENGTH) : "",
      })
    },

    "experimental.session.compacting": async ({ sessionID }, output) => {
      const state = session(sessionID)
      if (state.child) return
      state.notes = []
      await sessionStarted(sessionID, state, "compact")
      output.context.push(...state.notes)
    },

    "experimental.chat.system.transform": async ({ sessionID }, output) => {
      const state = sessions.get(sessionID)
      await state?.ready
      output.system.push(...(state?.notes ?? []))
    },
  }
}
