'use strict';
// Everything is in the page: numbers as packed arrays, pictures as a few sheets. Of ten thousand images only those
// on the screen are elements of the page.
(function () {
  const data = JSON.parse(document.getElementById('data').textContent);
  const sampled = data.mean !== null;
  const element = id => document.getElementById(id);

  // --- numbers -------------------------------------------------------------------------------

  function unpack(text, kind) {
    const bytes = Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
    return new kind(bytes.buffer);
  }
  const labels = unpack(data.labels, Uint16Array);
  const standardBest = unpack(data.standardBest, Uint16Array), standardRight = unpack(data.standardRight, Uint8Array);
  const mcBest = sampled ? unpack(data.mcBest, Uint16Array) : null;
  const mcRight = sampled ? unpack(data.mcRight, Uint8Array) : null;
  const best = sampled ? mcBest : standardBest;
  const which = unpack(data.which, Uint16Array), standard = unpack(data.standard, Uint16Array);
  const mean = sampled ? unpack(data.mean, Uint16Array) : null, std = sampled ? unpack(data.std, Uint16Array) : null;
  const measures = data.measures.map(one => {
    const values = unpack(one.values, Float32Array);
    return Object.assign(one, {values: values, sorted: Float32Array.from(values).sort()});
  });
  const measureOf = key => measures.find(one => one.key === key);

  const share = value => value / 65535;
  // ImageNet's names begin with a number of WordNet's, which says nothing to people.
  const classes = (data.classes || []).map(name => name === null ? null : name.replace(/^n\d{8}\s+(?=\S)/, ''));
  const className = k => k < classes.length && classes[k] !== null ? classes[k] : String(k);
  const thousands = n => n.toLocaleString('en-US');
  const percent = n => (100 * n / data.count).toFixed(2) + '%';
  const imageName = i => data.files ? data.files[i] : 'Image ' + i;

  // The share of all images whose value is below that of one.
  function rank(measure, value) {
    let low = 0, high = measure.sorted.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (measure.sorted[middle] < value) low = middle + 1; else high = middle;
    }
    return low / measure.sorted.length;
  }

  // --- which images, in which order ------------------------------------------------------------

  const always = [['all', 'All', () => true], ['wrong-standard', 'Wrong with Standard', i => !standardRight[i]]];
  const withPasses = [
    ['wrong-mc', 'Wrong with MC', i => !mcRight[i]],
    ['mended', 'Put right by MC', i => !standardRight[i] && mcRight[i]],
    ['spoilt', 'Spoilt by MC', i => standardRight[i] && !mcRight[i]],
    ['wrong-both', 'Wrong with both', i => !standardRight[i] && !mcRight[i]]];
  const filters = sampled ? always.concat(withPasses) : always;

  const state = {show: 'all', sort: measures[0].key, up: false, label: '', predicted: '', image: null};
  let view = [];   // the images that are shown, in their order

  function choose() {
    const passes = filters.find(one => one[0] === state.show)[2];
    const label = state.label === '' ? null : Number(state.label);
    const predicted = state.predicted === '' ? null : Number(state.predicted);
    const found = [];
    for (let i = 0; i < data.count; i++) {
      const asked = (label === null || labels[i] === label) && (predicted === null || best[i] === predicted);
      if (asked && passes(i)) found.push(i);
    }
    const measure = measureOf(state.sort), sign = state.up ? 1 : -1;
    found.sort((a, b) => (measure ? sign * (measure.values[a] - measure.values[b]) : sign * (b - a)) || a - b);
    view = found;
  }

  // --- pictures ----------------------------------------------------------------------------------

  const sheets = data.sheets, aSheet = sheets.columns * sheets.rows, loaded = new Map();

  function sheetOf(number) {
    if (!loaded.has(number)) {
      const image = new Image();
      image.src = sheets.files[number];
      loaded.set(number, image.decode().then(() => image));
    }
    return loaded.get(number);
  }

  function paint(canvas, i) {
    canvas.width = sheets.width;
    canvas.height = sheets.height;
    canvas.dataset.image = i;
    const place = i % aSheet, column = place % sheets.columns, row = Math.floor(place / sheets.columns);
    sheetOf(Math.floor(i / aSheet)).then(sheet => {
      if (canvas.dataset.image !== String(i)) return;   // it was given another one meanwhile
      canvas.getContext('2d').drawImage(sheet, column * sheets.width, row * sheets.height, sheets.width, sheets.height,
        0, 0, sheets.width, sheets.height);
      canvas.dataset.painted = i;
    });
  }

  // --- the images on the screen --------------------------------------------------------------------

  const images = element('images'), tiles = new Map();   // place in the view: its element
  const gap = 14, caption = 38;
  let columns = 1, side = 88, rowHeight = 1, columnWidth = 1;

  function measureUp() {
    side = Number(element('size').value);
    columns = Math.max(1, Math.floor((images.clientWidth + gap) / (side + gap)));
    columnWidth = (images.clientWidth + gap) / columns;
    rowHeight = Math.round(side * sheets.height / sheets.width) + caption + gap;
    document.documentElement.style.setProperty('--tools', element('tools').offsetHeight + 'px');
    images.style.height = Math.max(Math.ceil(view.length / columns) * rowHeight, 200) + 'px';
  }

  function clear() {
    tiles.forEach(tile => tile.remove());
    tiles.clear();
  }

  function fillScreen() {
    const top = -images.getBoundingClientRect().top, margin = 2 * rowHeight;
    const first = Math.max(0, Math.floor((top - margin) / rowHeight)) * columns;
    const last = Math.min(view.length, Math.ceil((top + window.innerHeight + margin) / rowHeight) * columns);
    tiles.forEach((tile, place) => {
      if (place < first || place >= last) {
        tile.remove();
        tiles.delete(place);
      }
    });
    for (let place = first; place < last; place++) {
      if (!tiles.has(place)) tiles.set(place, images.appendChild(newTile(place)));
    }
  }

  function newTile(place) {
    const i = view[place], tile = document.createElement('button'), canvas = document.createElement('canvas');
    tile.type = 'button';
    tile.className = 'tile ' + kindOf(i);
    tile.dataset.image = i;
    tile.style.left = (place % columns) * columnWidth + 'px';
    tile.style.top = Math.floor(place / columns) * rowHeight + 'px';
    tile.style.width = side + 'px';
    tile.setAttribute('aria-current', i === state.image);
    tile.title = imageName(i) + ': true class ' + className(labels[i]) + ', predicted ' + className(best[i]);
    const measure = measureOf(state.sort);
    const right = labels[i] === best[i];
    const words = right ? className(best[i]) : className(labels[i]) + ' \u2192 ' + className(best[i]);
    tile.append(canvas, text('span', words), text('span', measure ? number(measure.values[i]) : '#' + i));
    paint(canvas, i);
    return tile;
  }

  function kindOf(i) {
    if (!sampled) return standardRight[i] ? '' : 'wrong';
    if (mcRight[i]) return standardRight[i] ? '' : 'mended';
    return standardRight[i] ? 'spoilt' : 'wrong';
  }

  function text(tag, words, kind) {
    const made = document.createElement(tag);
    made.textContent = words;
    if (kind) made.className = kind;
    return made;
  }
  const number = value => Number.isInteger(value) && value > 1 ? String(value) : value.toFixed(3);

  // --- the image chosen -------------------------------------------------------------------------------

  function show(i) {
    state.image = i;
    tiles.forEach(tile => tile.setAttribute('aria-current', Number(tile.dataset.image) === i));
    element('panel').hidden = i === null;
    if (i === null) return;
    element('name').textContent = imageName(i);
    paint(element('picture'), i);
    element('said').replaceChildren(...said(i));
    element('probabilities').replaceChildren(...bars(i));
    element('uncertainties').replaceChildren(...measures.map(one => uncertainty(one, i)));
    const place = view.indexOf(i);
    element('previous').disabled = place <= 0;
    element('next').disabled = place < 0 || place === view.length - 1;
  }

  const VERDICTS = {mended: ['good', 'Put right by MC dropout'], spoilt: ['worse', 'Spoilt by MC dropout'],
    wrong: ['bad', sampled ? 'Wrong with both' : 'Wrong'], '': ['good', 'Right']};

  function said(i) {
    const lines = [text('p', 'True class '), text('p', 'Standard says ')];
    lines[0].append(text('b', className(labels[i])));
    lines[1].append(text('b', className(standardBest[i]), standardRight[i] ? 'good' : 'bad'));
    if (sampled) {
      lines.push(text('p', 'MC says '));
      lines[2].append(text('b', className(mcBest[i]), mcRight[i] ? 'good' : 'bad'));
    }
    const [kind, words] = VERDICTS[kindOf(i)];
    return lines.concat(text('p', words, kind));
  }

  // A row a class: a bar for the mean of the passes, a line for one std to either side, a diamond for Standard.
  function bars(i) {
    const cells = [];
    for (let k = i * data.shown; k < (i + 1) * data.shown; k++) {
      const name = text('span', className(which[k]), 'class' + (which[k] === labels[i] ? ' true' : ''));
      const track = text('span', '', 'track'), middle = sampled ? share(mean[k]) : share(standard[k]);
      name.title = name.textContent;
      track.append(part('mean', 0, middle));
      if (sampled) {
        track.append(part('spread', Math.max(0, middle - share(std[k])), Math.min(1, middle + share(std[k]))));
        track.append(part('diamond', share(standard[k])));
      }
      const words = middle.toFixed(3) + (sampled ? ' \u00b1 ' + share(std[k]).toFixed(3) : '');
      track.title = words + (sampled ? '; Standard ' + share(standard[k]).toFixed(3) : '');
      cells.push(name, track, text('span', words, 'number'));
    }
    return cells;
  }

  function part(kind, from, to) {
    const made = text('i', '', kind);
    made.style.left = 100 * from + '%';
    if (to !== undefined) made.style.width = 100 * (to - from) + '%';
    return made;
  }

  function uncertainty(measure, i) {
    const row = document.createElement('tr'), value = measure.values[i], below = Math.floor(100 * rank(measure, value));
    row.append(text('td', measure.name), text('td', number(value)), text('td', 'above ' + below + '%', 'soft'));
    row.title = measure.what;
    row.setAttribute('aria-current', measure.key === state.sort);
    return row;
  }

  function open(i) {
    show(i);
    document.body.classList.add('open');
    remember();
  }

  function step(by) {
    const place = view.indexOf(state.image) + by;
    if (place < 0 || place >= view.length) return;
    open(view[place]);
    const top = images.getBoundingClientRect().top + Math.floor(place / columns) * rowHeight;
    if (top < element('tools').offsetHeight || top + rowHeight > window.innerHeight) {
      window.scrollBy(0, top - window.innerHeight / 3);
    }
  }

  // --- what the reader does ------------------------------------------------------------------------------

  function update() {
    choose();
    clear();
    element('none').hidden = view.length > 0;
    element('count').textContent = thousands(view.length) + ' of ' + thousands(data.count);
    const ways = state.sort === 'order' ? ['last first', 'as they come'] : ['lowest first', 'highest first'];
    element('direction').textContent = state.up ? '\u2191 ' + ways[0] : '\u2193 ' + ways[1];
    for (const button of element('filters').children) {
      button.setAttribute('aria-pressed', button.dataset.show === state.show);
    }
    measureUp();
    fillScreen();
    show(view.includes(state.image) ? state.image : view.length ? view[0] : null);
    remember();
  }

  // The view is in the address too, so that it survives a reload and can be sent.
  function remember() {
    const words = new URLSearchParams(Object.entries(state).filter(([, value]) => value !== '' && value !== null));
    history.replaceState(null, '', '#' + words);
  }

  function recall() {
    const words = new URLSearchParams(location.hash.slice(1));
    const isClass = k => k !== null && /^\d+$/.test(k) && k < data.classCount;
    if (filters.some(one => one[0] === words.get('show'))) state.show = words.get('show');
    if (words.get('sort') === 'order' || measureOf(words.get('sort'))) state.sort = words.get('sort');
    state.up = words.get('up') === 'true';
    state.label = isClass(words.get('label')) ? words.get('label') : '';
    state.predicted = isClass(words.get('predicted')) ? words.get('predicted') : '';
    const image = Number(words.get('image'));
    if (words.has('image') && Number.isInteger(image) && image >= 0 && image < data.count) state.image = image;
  }

  function option(value, words) {
    return Object.assign(text('option', words), {value: value});
  }

  function fillTools() {
    for (const [key, words, passes] of filters) {
      let count = 0;
      for (let i = 0; i < data.count; i++) count += passes(i) ? 1 : 0;
      const button = text('button', words);
      button.type = 'button';
      button.dataset.show = key;
      const kind = key === 'wrong-both' || !sampled && key === 'wrong-standard' ? 'wrong' : key;
      if (VERDICTS[kind]) button.dataset.kind = kind;   // the colour of their frames
      button.append(text('span', thousands(count)));
      element('filters').append(button);
    }
    element('sort').append(...measures.map(one => option(one.key, one.name)), option('order', 'order of the images'));
    const present = Array.from(new Set([...labels, ...best])).sort((a, b) => a - b);
    for (const id of ['class', 'predicted']) {
      element(id).append(option('', 'any'), ...present.map(k => option(k, className(k))));
    }
  }

  function fillHead() {
    const wrong = right => percent(data.count - right.reduce((sum, one) => sum + one, 0));
    document.title = data.title + ': gallery';
    element('title').textContent = data.title;
    const words = [text('span', thousands(data.count) + ' images \u00b7 wrong with Standard ')];
    words.push(text('b', wrong(standardRight)));
    if (sampled) {
      words.push(text('span', ', with MC dropout (T=' + data.T + (data.adaptive ? ', adaptive' : '') + ') '));
      words.push(text('b', wrong(mcRight)));
    }
    element('summary').append(...words);
    element('note').textContent = data.note;
    const legend = [['mean', sampled ? 'mean of the passes' : 'Standard']];
    if (sampled) legend.push(['line', '\u00b1 one standard deviation over the passes'], ['diamond', 'Standard']);
    element('legend').append(...legend.map(([kind, name]) => {
      const one = text('span', '');
      one.append(text('i', '', kind), ' ' + name);
      return one;
    }));
    if (data.shown < data.classCount) {
      const many = thousands(data.classCount);
      element('legend').append('The ' + data.shown + ' likeliest of ' + many + ' classes, the true one among them.');
    }
  }

  function listen() {
    const toTop = () => {
      update();
      const above = element('tools').offsetTop;
      if (window.scrollY > above) window.scrollTo(0, above);
    };
    element('filters').addEventListener('click', event => {
      const button = event.target.closest('button');
      if (button) { state.show = button.dataset.show; toTop(); }
    });
    for (const [id, key] of [['sort', 'sort'], ['class', 'label'], ['predicted', 'predicted']]) {
      element(id).value = state[key];
      element(id).addEventListener('change', () => { state[key] = element(id).value; toTop(); });
    }
    element('direction').addEventListener('click', () => { state.up = !state.up; toTop(); });
    element('size').addEventListener('input', update);
    images.addEventListener('click', event => {
      const tile = event.target.closest('.tile');
      if (tile) open(Number(tile.dataset.image));
    });
    element('previous').addEventListener('click', () => step(-1));
    element('next').addEventListener('click', () => step(1));
    element('close').addEventListener('click', () => document.body.classList.remove('open'));
    document.addEventListener('keydown', event => {
      if (event.target.closest('select, input') || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === 'Escape') document.body.classList.remove('open');
      if (event.key === 'ArrowLeft') step(-1);
      if (event.key === 'ArrowRight') step(1);
    });
    let waiting = false;
    window.addEventListener('scroll', () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => { waiting = false; fillScreen(); });
    }, {passive: true});
    window.addEventListener('resize', () => { clear(); measureUp(); fillScreen(); });
  }

  if (data.sharp && Math.max(sheets.width, sheets.height) <= 64) document.body.classList.add('sharp');
  element('size').value = window.innerWidth < 600 ? 72 : 96;
  fillHead();
  fillTools();
  recall();
  listen();
  update();
}());
