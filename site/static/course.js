// What scrolls sideways must be reachable with the keyboard.
function reach() {
  for (const box of document.querySelectorAll("pre, .table-wrapper, div.math")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
}
addEventListener("load", reach);
addEventListener("resize", reach);
