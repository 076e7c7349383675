// --- curves ---

// On a phone a chart is drawn for its width, so that letters keep their size.
const WIDTH = window.matchMedia('(max-width: 30rem)').matches ? 340 : 520;
const HEIGHT = 262,
  LEFT = 58,
  RIGHT = 22,
  TOP = 10,
  BOTTOM = 38;

// Debiased moving average, as TensorBoard smooths.
function smoothed(points, weight) {
  if (weight <= 0) return points;
  let mean = 0,
    count = 0;
  return points.map(([step, value, low, high]) => {
    if (value === null) return [step, null, low, high];
    mean = weight * mean + (1 - weight) * value;
    count += 1;
    return [step, mean / (1 - weight ** count), low, high];
  });
}

// `least`: no two of them are nearer, 1 for what comes in whole numbers.
function ticks(low, high, wanted, least = 0) {
  const span = high - low || Math.abs(high) || 1;
  const power = 10 ** Math.floor(Math.log10(span / wanted));
  const step = Math.max(
    least,
    [1, 2, 5, 10].map(times => times * power).find(size => span / size <= wanted),
  );
  const found = [];
  for (
    let index = Math.ceil(low / step - 1e-9);
    found.length <= wanted && index * step <= high + step * 1e-9;
    index++
  )
    found.push(index * step);
  return found;
}

function tickText(value) {
  const size = Math.abs(value);
  if (size !== 0 && size < 1e-4) return value.toExponential(1);
  for (const [unit, letter] of [
    [1e12, 'T'],
    [1e9, 'G'],
    [1e6, 'M'],
    [1e3, 'k'],
  ])
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
  let path = '',
    pen = 'M';
  for (const [step, value] of points) {
    if (value === null || !Number.isFinite(y(value))) {
      pen = 'M';
      continue;
    }
    path += `${pen + x(step).toFixed(1)} ${y(value).toFixed(1)}`;
    pen = 'L';
  }
  return path;
}

// The axes of charts: places of the marks, their texts, and the text of a place beside its values.
const countAxis = name => ({
  name,
  marks: (first, last) => ticks(first, last, 5, 1),
  textOf: (_first, _last) => tickText,
  place: at => `${name} ${at}`,
});
function timeUnit(seconds) {
  return [
    [86400 * 3, 86400, 'days'],
    [3600 * 3, 3600, 'h'],
    [60 * 3, 60, 'min'],
    [0, 1, 's'],
  ].find(([from]) => seconds >= from);
}
const TIME_AXIS = {
  name: 'time since the first look',
  marks: (first, last) => {
    const [, size] = timeUnit(last - first);
    return ticks(first / size, last / size, 5).map(at => at * size);
  },
  textOf: (first, last) => {
    const [, size, unit] = timeUnit(last - first);
    return at => `${tickText(at / size)} ${unit}`;
  },
  place: at => `after ${duration(at)}`,
};

// A run that diverges by this factor flattens the others: the axis ends above these. It is done where values can diverge, and not on a
// logarithmic axis, which shows all.
const FAR_OFF = 10,
  CAN_DIVERGE = /loss|grad norm|perplexity/;
function farOff(title, series) {
  const most = new Map();
  for (const one of series)
    for (const [, value] of one.points)
      if (value !== null) most.set(one.run, Math.max(most.get(one.run) || 0, Math.abs(value)));
  const sizes = [...most.values()].filter(size => size > 0).sort((left, right) => left - right);
  const usual = sizes[(sizes.length - 1) >> 1];
  return new Map(
    CAN_DIVERGE.test(title) ? [...most].filter(([, size]) => size > FAR_OFF * usual) : [],
  );
}

// From the first to the last place, and from the lowest to the highest value, of all that can be drawn but what is far off.
function boundsOf(drawn, log, off, range) {
  let first = Infinity,
    last = -Infinity,
    low = Infinity,
    high = -Infinity;
  for (const one of drawn)
    for (const [step, value] of [...one.points, ...one.line]) {
      if (value === null || (log && value <= 0)) continue;
      first = Math.min(first, step);
      last = Math.max(last, step);
      if (off.has(one.run)) continue;
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
  // The part of the others that is not far off is seen, too.
  for (const one of drawn.filter(each => off.has(each.run)))
    for (const [, value] of one.points)
      if (value !== null && Math.abs(value) <= high) low = Math.min(low, value);
  if (range && !log && first <= last) {
    low = Math.min(low, range[0]);
    high = Math.max(high, range[1]);
  }
  // Smoothing leaves the last digits of a constant uneven.
  if (high - low <= 1e-9 * Math.max(Math.abs(low), Math.abs(high))) {
    const pad = Math.abs(low) * 0.05 || 1;
    if (!log) low = low >= 0 ? Math.max(0, low - pad) : low - pad;
    high += pad;
  }
  return {first, last, low, high};
}

// The values at the place nearest to `at`: {place, values}; a curve without a value there has none.
function measuredNear(drawn, at) {
  let place = null;
  for (const one of drawn)
    for (const [step, value] of one.points)
      if (value !== null && (place === null || Math.abs(step - at) < Math.abs(place - at)))
        place = step;
  const values = [];
  for (const one of drawn) {
    const point = one.points.find(([step, value]) => step === place && value !== null);
    if (!point) continue;
    const [, mean, low, high] = point;
    values.push(
      `${one.label} ${figure(mean)}${low === high ? '' : ` (${figure(low)} to ${figure(high)})`}`.trim(),
    );
  }
  return {place, values};
}

let clips = 0;

// `series`: {label, color, points, smooth, dashed, run}. `range`: the axis shows it for any values.
function chart(title, series, axis = countAxis('step'), range = null) {
  const log = byId('log').checked;
  const weight = Number(byId('smoothing').value);
  const drawn = series.map(one => ({
    ...one,
    line: one.smooth ? smoothed(one.points, weight) : one.points,
  }));
  const off = log ? new Map() : farOff(title, drawn);
  const {first, last, low, high} = boundsOf(drawn, log, off, range);
  const caption = element('figcaption', {}, title, element('span', {class: 'at'}));
  const box = element('figure', {'data-chart': title}, caption);
  if (first > last) {
    box.append(element('p', {class: 'legend'}, log ? 'no value above 0' : 'no finite value'));
    return box;
  }
  const bend = log ? Math.log10 : value => value;
  const x = step =>
    LEFT + (WIDTH - LEFT - RIGHT) * (last === first ? 0.5 : (step - first) / (last - first));
  const y = value =>
    TOP + ((HEIGHT - TOP - BOTTOM) * (bend(high) - bend(value))) / (bend(high) - bend(low) || 1);
  const paper = svg('svg', {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img', 'aria-label': title});
  const marks = log
    ? ticks(Math.log10(low), Math.log10(high), 5).map(at => 10 ** at)
    : ticks(
        low,
        high,
        5,
        drawn.every(one =>
          one.points.every(([, value]) => value === null || Number.isInteger(value)),
        )
          ? 1
          : 0,
      );
  for (const mark of marks) {
    paper.append(
      svg('line', {class: 'grid', x1: LEFT, x2: WIDTH - RIGHT, y1: y(mark), y2: y(mark)}),
      svg('text', {x: LEFT - 6, y: y(mark) + 4, 'text-anchor': 'end'}, tickText(mark)),
    );
  }
  const textOf = axis.textOf(first, last);
  for (const mark of axis.marks(first, last))
    paper.append(svg('text', {x: x(mark), y: HEIGHT - 23, 'text-anchor': 'middle'}, textOf(mark)));
  paper.append(
    svg('text', {x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 7, 'text-anchor': 'middle'}, axis.name),
  );
  const clip = `clip-${clips++}`;
  const inside = svg('g', {'clip-path': `url(#${clip})`});
  const room = svg('clipPath', {id: clip});
  room.append(
    svg('rect', {
      x: LEFT - 3,
      y: TOP - 3,
      width: WIDTH - LEFT - RIGHT + 6,
      height: HEIGHT - TOP - BOTTOM + 6,
    }),
  );
  paper.append(room, inside);
  for (const one of drawn) {
    if (one.smooth && weight > 0)
      inside.append(svg('path', {class: 'raw', stroke: one.color, d: pathOf(one.points, x, y)}));
    const curve = svg('path', {class: 'curve', stroke: one.color, d: pathOf(one.line, x, y)});
    if (one.dashed) curve.setAttribute('stroke-dasharray', '5 3');
    inside.append(curve);
    if (one.line.length === 1 && one.line[0][1] !== null)
      inside.append(
        svg('circle', {cx: x(one.line[0][0]), cy: y(one.line[0][1]), r: 3, fill: one.color}),
      );
  }
  const cursor = svg('line', {class: 'cursor', y1: TOP, y2: HEIGHT - BOTTOM, visibility: 'hidden'});
  paper.append(cursor);
  paper.addEventListener('pointermove', event => {
    const bounds = paper.getBoundingClientRect();
    const at =
      first +
      (last - first) *
        Math.min(
          1,
          Math.max(
            0,
            (((event.clientX - bounds.left) / bounds.width) * WIDTH - LEFT) /
              (WIDTH - LEFT - RIGHT),
          ),
        );
    const {place, values} = measuredNear(drawn, at);
    cursor.setAttribute('x1', x(place));
    cursor.setAttribute('x2', x(place));
    cursor.setAttribute('visibility', 'visible');
    caption.lastChild.textContent = `${axis.place(place)}: ${values.slice(0, 8).join(', ')}`;
  });
  paper.addEventListener('pointerleave', () => {
    cursor.setAttribute('visibility', 'hidden');
    caption.lastChild.textContent = '';
  });
  // The name of a single curve is in the title, or in the facts above.
  const legend = element(
    'div',
    {class: 'legend'},
    ...(drawn.length === 1 && !drawn[0].named ? [] : drawn.slice(0, 16)).map(one => {
      const line = element('i', one.dashed ? {class: 'dashed'} : {});
      line.style.borderTopColor = one.color;
      return element('span', {}, line, one.label);
    }),
  );
  box.append(paper, legend);
  for (const [run, most] of off)
    box.append(
      element(
        'p',
        {class: 'cut'},
        `The axis ends at ${figure(high)}: ${shortName(run)} goes to ${figure(most)}. A log axis shows all of it.`,
      ),
    );
  return box;
}
