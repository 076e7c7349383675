// --- curves ---

const WIDTH = 520, HEIGHT = 250, LEFT = 58, RIGHT = 22, TOP = 10, BOTTOM = 26;

// Debiased moving average, as TensorBoard smooths.
function smoothed(points, weight) {
  if (weight <= 0) return points;
  let mean = 0, count = 0;
  return points.map(([step, value, low, high]) => {
    if (value === null) return [step, null, low, high];
    mean = weight * mean + (1 - weight) * value;
    count += 1;
    return [step, mean / (1 - Math.pow(weight, count)), low, high];
  });
}

function ticks(low, high, wanted) {
  const span = high - low || Math.abs(high) || 1;
  const power = Math.pow(10, Math.floor(Math.log10(span / wanted)));
  const step = [1, 2, 5, 10].map(times => times * power).find(size => span / size <= wanted);
  const found = [];
  for (let index = Math.ceil(low / step); found.length <= wanted && index * step <= high + step * 1e-9; index++) found.push(index * step);
  return found;
}

function tickText(value) {
  const size = Math.abs(value);
  if (size !== 0 && size < 1e-4) return value.toExponential(1);
  for (const [unit, letter] of [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k']])
    if (size >= (letter === 'k' ? 1e4 : unit)) return +(value / unit).toPrecision(5) + letter;
  return String(+value.toPrecision(5));
}

function svg(tag, attributes, text) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function pathOf(points, x, y) {
  let path = '', pen = 'M';
  for (const [step, value] of points) {
    if (value === null || !isFinite(y(value))) { pen = 'M'; continue; }
    path += pen + x(step).toFixed(1) + ' ' + y(value).toFixed(1);
    pen = 'L';
  }
  return path;
}

// `series`: {label, color, points, smooth, dashed}. `range`: that the axis shows whatever the values are.
function chart(title, series, unit = 'step', range = null) {
  const log = byId('log').checked;
  const weight = Number(byId('smoothing').value);
  const drawn = series.map(one => ({...one, line: one.smooth ? smoothed(one.points, weight) : one.points}));
  let first = Infinity, last = -Infinity, low = Infinity, high = -Infinity;
  for (const one of drawn)
    for (const [step, value] of [...one.points, ...one.line]) {
      if (value === null || (log && value <= 0)) continue;
      first = Math.min(first, step); last = Math.max(last, step);
      low = Math.min(low, value); high = Math.max(high, value);
    }
  const caption = element('figcaption', {}, title, element('span', {class: 'at'}));
  const box = element('figure', {'data-chart': title}, caption);
  if (first > last) { box.append(element('p', {class: 'legend'}, log ? 'no value above 0' : 'no finite value')); return box; }
  if (range && !log) { low = Math.min(low, range[0]); high = Math.max(high, range[1]); }
  // Smoothing leaves the last digits of a constant uneven.
  if (high - low <= 1e-9 * Math.max(Math.abs(low), Math.abs(high))) { const pad = Math.abs(low) * 0.05 || 1; low -= log ? 0 : pad; high += pad; }
  const bend = log ? Math.log10 : value => value;
  const x = step => LEFT + (WIDTH - LEFT - RIGHT) * (last === first ? 0.5 : (step - first) / (last - first));
  const y = value => TOP + (HEIGHT - TOP - BOTTOM) * (bend(high) - bend(value)) / ((bend(high) - bend(low)) || 1);
  const paper = svg('svg', {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img', 'aria-label': title});
  const marks = log ? ticks(Math.log10(low), Math.log10(high), 5).map(at => Math.pow(10, at)) : ticks(low, high, 5);
  for (const mark of marks) {
    paper.append(svg('line', {class: 'grid', x1: LEFT, x2: WIDTH - RIGHT, y1: y(mark), y2: y(mark)}),
      svg('text', {x: LEFT - 6, y: y(mark) + 4, 'text-anchor': 'end'}, tickText(mark)));
  }
  for (const mark of ticks(first, last, 5))
    paper.append(svg('text', {x: x(mark), y: HEIGHT - 8, 'text-anchor': 'middle'}, tickText(mark)));
  for (const one of drawn) {
    if (one.smooth && weight > 0) paper.append(svg('path', {class: 'raw', stroke: one.color, d: pathOf(one.points, x, y)}));
    const curve = svg('path', {class: 'curve', stroke: one.color, d: pathOf(one.line, x, y)});
    if (one.dashed) curve.setAttribute('stroke-dasharray', '5 3');
    paper.append(curve);
    if (one.line.length === 1 && one.line[0][1] !== null) paper.append(svg('circle', {cx: x(one.line[0][0]), cy: y(one.line[0][1]), r: 3, fill: one.color}));
  }
  const cursor = svg('line', {class: 'cursor', y1: TOP, y2: HEIGHT - BOTTOM, visibility: 'hidden'});
  paper.append(cursor);
  paper.addEventListener('pointermove', event => {
    const bounds = paper.getBoundingClientRect();
    const at = first + (last - first) * Math.min(1, Math.max(0, ((event.clientX - bounds.left) / bounds.width * WIDTH - LEFT) / (WIDTH - LEFT - RIGHT)));
    const values = drawn.map(one => {
      let best = null;
      for (const point of one.points) if (point[1] !== null && (!best || Math.abs(point[0] - at) < Math.abs(best[0] - at))) best = point;
      return best ? `${one.label} ${figure(best[1])}` : '';
    });
    cursor.setAttribute('x1', x(at)); cursor.setAttribute('x2', x(at)); cursor.setAttribute('visibility', 'visible');
    caption.lastChild.textContent = `${unit} ${Math.round(at)}: ${values.slice(0, 8).join(', ')}`;
  });
  paper.addEventListener('pointerleave', () => { cursor.setAttribute('visibility', 'hidden'); caption.lastChild.textContent = ''; });
  // The name of a single curve is in the title, or in the facts above.
  const legend = element('div', {class: 'legend'}, ...(drawn.length === 1 && !drawn[0].named ? [] : drawn.slice(0, 16)).map(one => {
    const line = element('i', one.dashed ? {class: 'dashed'} : {});
    line.style.borderTopColor = one.color;
    return element('span', {}, line, one.label);
  }));
  box.append(paper, legend);
  return box;
}

