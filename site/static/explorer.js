// Explorers that answer on a page without Python: what they show at each step was written when the
// site was built (site/scenes.py). One control at a time leaves its place, the others stand where
// the lesson sets them. Until its scenes are here, and without this script, the still picture stays.

const asked = new Map();

function read(address) {
  if (!asked.has(address)) {
    const answer = fetch(address).then((response) => {
      if (!response.ok) throw new Error(`${address}: ${response.status}`);
      return response.json();
    });
    answer.catch(() => asked.delete(address)); // so that the next step asks again
    asked.set(address, answer);
  }
  return asked.get(address);
}

function make(tag, properties = {}, ...inside) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...inside);
  return element;
}

// What a control looks like: {element, labelled, show(step, text)}; it calls take(step).
const views = {
  number(control, id, take) {
    const last = control.steps.length - 1;
    const slider = make("input", { type: "range", id, min: 0, max: last, step: 1 });
    const value = make("output", { className: "value", htmlFor: id });
    slider.addEventListener("input", () => take(Number(slider.value)));
    const show = (step, text) => {
      slider.value = step;
      value.textContent = text;
      slider.setAttribute("aria-valuetext", text);
    };
    return { element: make("span", { className: "slide" }, slider, value), show };
  },
  list(control, id, take) {
    const options = control.steps.map((text, step) => make("option", { value: step }, text));
    const list = make("select", { id }, ...options);
    list.addEventListener("change", () => take(Number(list.value)));
    return { element: list, show: (step) => { list.value = step; } };
  },
  buttons(control, id, take) {
    const buttons = control.steps.map((text, step) => {
      const button = make("button", { type: "button" }, text);
      button.addEventListener("click", () => take(step));
      return button;
    });
    const group = make("span", { className: "buttons" }, ...buttons);
    group.setAttribute("role", "group");
    group.setAttribute("aria-labelledby", `${id}-label`);
    const show = (chosen) => buttons.forEach((button, step) => {
      button.setAttribute("aria-pressed", step === chosen);
    });
    return { element: group, show };
  },
  switch(control, id, take) {
    const tick = make("input", { type: "checkbox", id });
    tick.addEventListener("change", () => take(Number(tick.checked)));
    return { element: tick, show: (step) => { tick.checked = step === 1; } };
  },
};

// Where a picture is wider than the page it fades at the edge behind which it goes on, can be moved
// with the keyboard, and its hint shows (explorer.css).
function sayWhereItGoesOn(picture) {
  const look = () => {
    const beyond = picture.scrollWidth - picture.clientWidth;
    picture.classList.toggle("wide", beyond > 1);
    picture.classList.toggle("at-end", picture.scrollLeft > beyond - 2);
    if (beyond > 1) picture.tabIndex = 0;
    else picture.removeAttribute("tabindex");
  };
  picture.addEventListener("scroll", look, { passive: true });
  new ResizeObserver(look).observe(picture);
}

async function bringToLife(figure) {
  const base = figure.dataset.scenes;
  const { controls, first, backs } = await read(`${base}.json`);
  const behind = make("img", { alt: "" });
  const moving = make("div");
  const said = make("output", { className: "said" });
  said.setAttribute("aria-live", "polite");
  const rows = new Map();
  let newest = 0;

  function show(scene) {
    const back = backs[scene.back];
    if (behind.src !== back) behind.src = back;
    moving.innerHTML = scene.picture;
    said.textContent = scene.said;
    const hidden = scene.hidden ?? [];
    for (const [name, row] of rows) row.element.hidden = hidden.includes(name);
  }

  function place(moved, step, brought = {}) {
    for (const control of controls) {
      const mine = control === moved ? step : control.at;
      const text = control !== moved && brought[control.name];
      const known = text ? control.steps.indexOf(text) : mine;
      rows.get(control.name).show(known < 0 ? mine : known, text || control.steps[mine]);
    }
  }

  async function take(control, step) {
    newest += 1;
    const mine = newest;
    place(control, step);
    const scenes = await read(`${base}.${control.name}.json`);
    if (mine !== newest) return; // only the newest question is answered
    const scene = scenes[step - (control.skips ?? 0)] ?? first; // the first line of a list is none
    place(control, step, scene.brought);
    show(scene);
  }

  const box = make("div", { className: "controls" });
  for (const control of controls) {
    const id = `${base.split("/").pop()}-${control.name}`;
    const view = views[control.kind](control, id, (step) => take(control, step));
    const label = control.kind === "buttons"
      ? make("span", { className: "label", id: `${id}-label` }, control.label)
      : make("label", { className: "label", htmlFor: id }, control.label);
    const row = make("div", { className: `row ${control.kind}` }, label, view.element);
    const reach = () => read(`${base}.${control.name}.json`).catch(() => {});
    row.addEventListener("pointerenter", reach);
    row.addEventListener("focusin", reach);
    rows.set(control.name, { element: row, show: view.show });
    box.append(row);
  }
  const reset = make("button", { type: "button" }, "As the lesson sets it");
  reset.addEventListener("click", () => {
    newest += 1;
    place();
    show(first);
  });
  const more = figure.dataset.run
    ? [" All of them at once: ", make("a", { href: figure.dataset.run }, "run it in your browser"), "."]
    : [];
  const note = make("p", { className: "note" },
    "One control at a time; the others go back to where the lesson sets them, but for those that its text moves together, below the rest.", ...more, " ", reset);
  place();
  show(first);
  const picture = make("div", { className: "picture" },
    make("div", { className: "layers" }, behind, moving));
  picture.setAttribute("role", "group");
  picture.setAttribute("aria-label", "the picture");
  const hint = make("p", { className: "hint" }, "The picture goes on to the right: move it sideways.");
  figure.replaceChildren(box, picture, hint, said, note);
  figure.classList.add("live");
  sayWhereItGoesOn(picture);
}

for (const figure of document.querySelectorAll("figure.explorer[data-scenes]")) {
  bringToLife(figure).catch((why) => console.info("The still picture stays:", why.message));
}
