// --- tables ---

// The last sort order of the table under a heading: {column, down}. It stays while the page updates the table.
const sorted = {};

function compared(left, right) {
  if (typeof left === 'number' && typeof right === 'number') return left - right;
  return String(left).localeCompare(String(right), undefined, {numeric: true});
}

// Unknown values come last in both directions.
function inOrder(rows, order) {
  if (!order) return rows;
  const known = value => value !== null && value !== undefined && value !== '';
  return rows.slice().sort((left, right) => {
    const [one, other] = [left[order.column], right[order.column]];
    if (!known(one) || !known(other)) return known(other) - known(one);
    return (order.down ? -1 : 1) * compared(one, other);
  });
}

function cellOf(value) {
  if (value === null || value === undefined || value === '') return '–';
  if (typeof value === 'number') return Number.isInteger(value) ? String(value) : figure(value, 6);
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  if (text.length < 200 && !text.includes('\n')) return text;
  const first = text.split('\n').find(line => line.trim()) || '';
  return element(
    'details',
    {},
    element('summary', {}, `${first.slice(0, 80)} …`),
    element('pre', {}, text),
  );
}

const WIDE_COLUMNS = 5;

// `rows`: values; a click on a column's name sorts by it, another one the other way round.
function table(heading, columns, rows) {
  if (!rows.length) return [];
  const body = element('tbody');
  const kinds = columns.map((_, column) => {
    const known = rows
      .map(row => row[column])
      .filter(value => value !== null && value !== undefined && value !== '');
    return known.length && known.every(value => typeof value === 'number') ? 'number' : '';
  });
  const rowOf = row =>
    element(
      'tr',
      {},
      ...row.map((value, column) =>
        element('td', kinds[column] ? {class: kinds[column]} : {}, cellOf(value)),
      ),
    );
  const names = columns.map((name, column) => {
    const head = element(
      'th',
      {scope: 'col', class: kinds[column]},
      element('button', {type: 'button'}, name),
    );
    head.firstChild.addEventListener('click', () => {
      const now = sorted[heading];
      sorted[heading] =
        now && now.column === column
          ? now.down
            ? null
            : {column, down: true}
          : {column, down: false};
      fill();
    });
    return head;
  });
  const fill = () => {
    const order = sorted[heading];
    names.forEach((head, column) => {
      if (order && order.column === column)
        head.setAttribute('aria-sort', order.down ? 'descending' : 'ascending');
      else head.removeAttribute('aria-sort');
    });
    body.replaceChildren(...inOrder(rows, order).map(rowOf));
  };
  fill();
  return [
    element('h2', {}, heading),
    element(
      'div',
      {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': heading},
      element(
        'table',
        columns.length > WIDE_COLUMNS ? {class: 'wide'} : {},
        element('thead', {}, element('tr', {}, ...names)),
        body,
      ),
    ),
  ];
}

// RFC 4180. Cells that are numbers become numbers.
function rowsOfCsv(text) {
  const rows = [[]];
  let cell = '',
    quoted = false;
  const end = () => {
    const number = cell.trim() === '' ? NaN : Number(cell);
    rows.at(-1).push(Number.isFinite(number) ? number : cell);
    cell = '';
  };
  for (let at = 0; at < text.length; at++) {
    const letter = text[at];
    if (quoted && letter === '"' && text[at + 1] === '"') {
      cell += '"';
      at++;
    } else if (letter === '"') quoted = !quoted;
    else if (letter === ',' && !quoted) end();
    else if (letter === '\n' && !quoted) {
      end();
      rows.push([]);
    } else if (letter !== '\r') cell += letter;
  }
  if (cell || rows.at(-1).length) end();
  else rows.pop();
  return rows;
}
