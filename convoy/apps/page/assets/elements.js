'use strict';
// Shared by all parts of the page: elements, requests to the server, texts of numbers and times.
const byId = id => document.getElementById(id);

function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

async function ask(path, parameters) {
  const query = new URLSearchParams(parameters || []).toString();
  const response = await fetch(path + (query ? `?${query}` : ''));
  if (!response.ok) throw new Error((await response.text()).trim());
  return response;
}
const asJson = async (path, parameters) => (await ask(path, parameters)).json();

function figure(value, digits = 4) {
  if (value === null || value === undefined) return '–';
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return value.toExponential(2);
  return String(+value.toFixed(size >= 1000 ? 0 : digits));
}

function age(seconds) {
  const passed = Math.max(0, Date.now() / 1000 - seconds);
  if (!seconds) return '';
  // The blanks do not break.
  if (passed < 90) return `${Math.round(passed)} s ago`;
  if (passed < 5400) return `${Math.round(passed / 60)} min ago`;
  return passed < 129600
    ? `${Math.round(passed / 3600)} h ago`
    : `${Math.round(passed / 86400)} days ago`;
}

// The two largest parts of it; the blanks do not break.
function duration(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  const parts = [
    [86400, 'days'],
    [3600, 'h'],
    [60, 'min'],
    [1, 's'],
  ];
  const first = Math.max(
    0,
    parts.findIndex(([size]) => whole >= size),
  );
  let rest = whole;
  const words = parts.slice(whole ? first : 3).map(([size, unit]) => {
    const count = Math.floor(rest / size);
    rest -= count * size;
    return [count, unit];
  });
  return words
    .slice(0, 2)
    .filter(([count], at) => at === 0 || count)
    .map(([count, unit]) => `${count}\u00a0${unit}`)
    .join('\u00a0');
}

// A folded part; it stays open while the page updates its surroundings.
const opened = {};
function folded(summary, name, ...children) {
  const fold = element('details', {class: 'fold'}, element('summary', {}, summary), ...children);
  fold.open = Boolean(opened[name]);
  fold.addEventListener('toggle', () => {
    opened[name] = fold.open;
  });
  return fold;
}

// [path, value] of every value inside; lists as text.
function flat(value, path, into) {
  if (value !== null && typeof value === 'object' && !Array.isArray(value))
    for (const [key, inner] of Object.entries(value))
      flat(inner, path ? `${path}.${key}` : key, into);
  else
    into.push([path, ['string', 'number'].includes(typeof value) ? value : JSON.stringify(value)]);
  return into;
}

// The current content of a part of the page; unchanged parts stay, because a person may read or have scrolled them.
const shownTexts = {};
function renew(id, children, key = null) {
  const made = element('div', {}, ...children);
  const text = key ?? made.innerHTML;
  if (shownTexts[id] === text) return false;
  shownTexts[id] = text;
  byId(id).replaceChildren(...made.childNodes);
  return true;
}
