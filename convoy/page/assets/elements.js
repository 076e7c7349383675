'use strict';
// What every part of the page uses: elements, questions to the server, texts of numbers and times.
const byId = id => document.getElementById(id);

function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

async function ask(path, parameters) {
  const query = new URLSearchParams(parameters || []).toString();
  const response = await fetch(path + (query ? '?' + query : ''));
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
  if (passed < 90) return Math.round(passed) + ' s ago';
  if (passed < 5400) return Math.round(passed / 60) + ' min ago';
  return passed < 129600 ? Math.round(passed / 3600) + ' h ago' : Math.round(passed / 86400) + ' days ago';
}

// [path, value] of every value inside; lists as text.
function flat(value, path, into) {
  if (value !== null && typeof value === 'object' && !Array.isArray(value))
    for (const [key, inner] of Object.entries(value)) flat(inner, path ? path + '.' + key : key, into);
  else into.push([path, ['string', 'number'].includes(typeof value) ? value : JSON.stringify(value)]);
  return into;
}

// What a part of the page shows now; it stays as it is where nothing changed, for somebody may read it, or have scrolled in it.
const shownTexts = {};
function renew(id, children, key = null) {
  const made = element('div', {}, ...children);
  const text = key ?? made.innerHTML;
  if (shownTexts[id] === text) return false;
  shownTexts[id] = text;
  byId(id).replaceChildren(...made.childNodes);
  return true;
}
