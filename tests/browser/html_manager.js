// A page that draws widgets with html-manager and has a kernel behind it, as VS Code and Colab have:
// what comes over the kernel's websocket becomes widgets, and what a widget says goes back.

// html-manager's parts come as AMD modules, each after those that it needs
const modules = {};
window.define = (name, needs, make) => {
  const found = (need) => (need === "module" ? { id: name, uri: `/${name}.js` } : modules[need]);
  modules[name] = make(...needs.map(found));
};
window.define.amd = true;

function kernel(address) {
  const socket = new WebSocket(address);
  const session = crypto.randomUUID();
  const waiting = new Map(); // what to call when a message of ours is answered
  const comms = new Map();
  const { HTMLManager } = modules["@jupyter-widgets/html-manager"];
  const manager = new HTMLManager();

  function send(type, content, callbacks, metadata = {}) {
    const id = crypto.randomUUID();
    const header = { msg_id: id, msg_type: type, session, username: "", version: "5.3", date: "" };
    waiting.set(id, callbacks || {});
    const message = { header, parent_header: {}, metadata, content, channel: "shell", buffers: [] };
    socket.send(JSON.stringify(message));
    return id;
  }

  function commOf(id) {
    const comm = { comm_id: id, target_name: "jupyter.widget" };
    comm.send = (data, callbacks, metadata) =>
      send("comm_msg", { comm_id: id, data }, callbacks, metadata);
    comm.on_msg = (handle) => { comm.heard = handle; };
    comm.on_close = () => {};
    comm.close = () => {};
    comms.set(id, comm);
    return comm;
  }

  async function show(data) {
    const view = data["application/vnd.jupyter.widget-view+json"];
    if (!view) return;
    const place = document.body.appendChild(document.createElement("div"));
    const model = await manager.get_model(view.model_id);
    await manager.display_view(manager.create_view(model), place);
  }

  async function hear(message) {
    const { header, parent_header: parent, content } = message;
    const asked = waiting.get(parent.msg_id) || {};
    if (header.msg_type === "comm_open") {
      await manager.handle_comm_open(commOf(content.comm_id), message);
    } else if (header.msg_type === "comm_msg") {
      await comms.get(content.comm_id)?.heard?.(message);
    } else if (header.msg_type === "execute_result" || header.msg_type === "display_data") {
      await show(content.data);
    } else if (header.msg_type === "stream") {
      asked.print?.(content.text);
    } else if (header.msg_type === "error") {
      asked.print?.(content.traceback.join("\n"));
    } else if (header.msg_type === "status") {
      asked.iopub?.status?.(message);
      if (content.execution_state === "idle") asked.done?.();
    }
  }

  let heard = Promise.resolve(); // one after the other
  socket.onmessage = ({ data }) => {
    heard = heard.then(() => hear(JSON.parse(data)));
  };
  // run code to its end; what it printed
  window.run = (code) =>
    new Promise((done) => {
      let printed = "";
      const print = (text) => { printed += text; };
      const content = { code, silent: false, store_history: false, user_expressions: {} };
      content.allow_stdin = false;
      send("execute_request", content, { print, done: () => done(printed) });
    });
  return new Promise((opened) => { socket.onopen = () => opened(true); });
}
