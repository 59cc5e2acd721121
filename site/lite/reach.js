// Says so where a network keeps Python's own files away, instead of a kernel that starts for ever.
const { core, wheel } = document.currentScript.dataset;

// A network that wants a login first answers everything with a page of its own.
async function isReached(signal) {
  const answers = await Promise.all([
    fetch(core, { signal }),
    fetch(wheel, { method: "HEAD", signal }),
  ]);
  const isPage = (answer) => /html/.test(answer.headers.get("content-type"));
  if (!answers.every((answer) => answer.ok && !isPage(answer))) return false;
  return (await answers[0].text()).includes("loadPyodide");
}

function make(tag, properties, ...inside) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...inside);
  return element;
}

// At the foot, where it covers no menu.
function sayItIsBlocked() {
  const pages = make("a", { href: "../../index.html" }, "the course's pages");
  const close = make("button", { type: "button" }, "Close");
  const said = make("div", { className: "roofline-out-of-reach" },
    make("span", {}, "Python cannot start here: this network does not let the browser reach ",
      `${new URL(core).host}, where its files are. Every lesson can be read on `, pages,
      ", which also say how to run it with a Python of your own. "),
    close);
  said.setAttribute("role", "alert");
  said.style.cssText = "position:fixed;inset:auto 0 0 0;z-index:100000;padding:12px 16px;"
    + "display:flex;gap:16px;align-items:center;justify-content:space-between;"
    + "background:#fff4ce;color:#1f2328;font:15px/1.4 sans-serif;border-top:2px solid #9a6700";
  pages.style.cssText = "color:#0b5cad;text-decoration:underline";
  close.style.cssText = "flex:none;font:inherit;padding:4px 12px;background:#fff;color:inherit;"
    + "border:1px solid #626a73;border-radius:3px;cursor:pointer";
  close.addEventListener("click", () => said.remove());
  document.body.append(said);
}

async function look() {
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(), 20000);
  const reached = await isReached(stop.signal).catch((why) => {
    console.info("Python is out of reach:", why.message);
    return false;
  });
  clearTimeout(timer);
  if (!reached) sayItIsBlocked();
}

look();
