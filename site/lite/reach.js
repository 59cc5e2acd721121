// Says so where a network keeps Python's own files away, instead of a kernel that starts for ever.
const needs = document.currentScript.dataset.needs;

async function look() {
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(), 20000);
  try {
    const answer = await fetch(needs, { method: "HEAD", cache: "no-store", signal: stop.signal });
    if (answer.ok) return;
  } catch (why) {
    console.info("Python is out of reach:", why.message);
  } finally {
    clearTimeout(timer);
  }
  const host = new URL(needs).host;
  const said = document.createElement("div");
  said.setAttribute("role", "alert");
  said.className = "roofline-out-of-reach";
  said.style.cssText = "position:fixed;inset:0 0 auto 0;z-index:100000;padding:12px 16px;"
    + "background:#fff4ce;color:#1f2328;font:15px/1.4 sans-serif;border-bottom:2px solid #9a6700";
  said.textContent = `Python cannot start here: this network does not let the browser reach ${host}, `
    + "where its files are. Every lesson can be read on the course's pages, or run after "
    + "pip install 'roofline_lib[course]'.";
  document.body.append(said);
}

if (needs) look();
