// --- questions to the model of a run, by OpenAI's API ---

// By run: {turns: [{question, answers: {speaker: text}, failure}], stop: AbortController while answers arrive, or null}.
const talks = {};

// The messages that a speaker gets: earlier turns with its own answers, or with the trained model's where it gave none.
function messagesFor(turns, speaker, system) {
  const messages = system ? [{role: 'system', content: system}] : [];
  for (const {question, answers} of turns.filter(turn => !turn.failure))
    messages.push(
      {role: 'user', content: question},
      {role: 'assistant', content: answers[speaker] ?? answers.trained},
    );
  return messages;
}

async function* eventsOf(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let text = ''; ; ) {
    const {done, value} = await reader.read();
    if (done) return;
    text += value;
    const events = text.split('\n\n');
    text = events.pop();
    for (const event of events) {
      const data = event.replace(/^data: /, '');
      if (data === '[DONE]') return;
      yield JSON.parse(data);
    }
  }
}

function reasonOf(text) {
  try {
    return JSON.parse(text).error.message;
  } catch {
    return text.trim();
  }
}

async function answerOf(run, question, signal, show) {
  const response = await fetch(`/v1/chat/completions?${new URLSearchParams([['run', run]])}`, {
    method: 'POST',
    signal,
    headers: {'content-type': 'application/json'},
    body: JSON.stringify({stream: true, max_tokens: 1024, ...question}),
  });
  if (!response.ok) throw new Error(reasonOf(await response.text()));
  let text = '';
  for await (const event of eventsOf(response)) {
    if (event.error) throw new Error(event.error.message);
    text += event.choices[0]?.delta?.content ?? '';
    show(text);
  }
}

function turnOf({question, answers, failure}) {
  const boxes = Object.entries(answers).map(([speaker, text]) =>
    element(
      'div',
      {'data-speaker': speaker},
      element('h3', {}, speaker),
      element('pre', {tabindex: '0'}, text),
    ),
  );
  return element(
    'div',
    {class: 'turn'},
    element('p', {class: 'asked'}, question),
    element('div', {class: 'answers'}, ...boxes),
    ...(failure ? [element('p', {class: 'failure'}, failure)] : []),
  );
}

function drawChat(run) {
  if (!run?.chat) {
    renew('chat', []);
    return;
  }
  const name = run.summary.name;
  if (shownTexts.chat === name) return;
  talks[name] ??= {turns: [], stop: null};
  const talk = talks[name];
  const system = run.identity?.config?.data?.system_prompt;
  const list = element('div', {class: 'turns', 'aria-live': 'polite'}, ...talk.turns.map(turnOf));
  const text = element('textarea', {
    rows: '3',
    placeholder: 'ask; enter sends, shift enter begins a line',
    'aria-label': 'question',
  });
  const beside = element('input', {type: 'checkbox'});
  const warmth = element('input', {type: 'number', min: '0', max: '2', step: '0.1', value: '0.2'});
  const button = (label, action) => {
    const made = element('button', {type: 'button'}, label);
    made.addEventListener('click', action);
    return made;
  };

  async function send() {
    const question = text.value.trim();
    if (!question || talk.stop) return;
    const speakers = run.chat.filter(speaker => speaker === 'trained' || beside.checked);
    const told = speakers.map(speaker => messagesFor(talk.turns, speaker, system));
    const turn = {question, answers: Object.fromEntries(speakers.map(speaker => [speaker, '']))};
    talk.turns.push(turn);
    text.value = '';
    list.append(turnOf(turn));
    // The page may show another run when an answer arrives.
    const redraw = () => {
      if (shownTexts.chat === name)
        byId('chat').querySelector('.turns').lastChild?.replaceWith(turnOf(turn));
    };
    talk.stop = new AbortController();
    const ends = await Promise.allSettled(
      speakers.map((model, at) =>
        answerOf(
          name,
          {
            model,
            messages: [...told[at], {role: 'user', content: question}],
            temperature: Number(warmth.value),
          },
          talk.stop.signal,
          grown => {
            turn.answers[model] = grown;
            redraw();
          },
        ),
      ),
    );
    talk.stop = null;
    const failed = ends.find(end => end.status === 'rejected' && end.reason.name !== 'AbortError');
    if (failed) {
      turn.failure = failed.reason.message;
      text.value ||= question;
    }
    redraw();
  }

  text.addEventListener('keydown', event => {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send().catch(fail);
  });
  renew(
    'chat',
    [
      element('h2', {}, 'Ask the model'),
      list,
      text,
      element(
        'p',
        {class: 'choices'},
        button('send', () => send().catch(fail)),
        button('stop', () => talk.stop?.abort()),
        button('start again', () => {
          talk.stop?.abort();
          talk.turns.length = 0;
          list.replaceChildren();
        }),
        ...(run.chat.includes('base') ? [element('label', {}, beside, 'the base beside it')] : []),
        element('label', {}, 'temperature', warmth),
      ),
    ],
    name,
  );
}
