// This module draws bars by day as SVG. A table next to them has the same numbers.
import {h, s, wide} from './dom.js';
import {t, number} from './i18n.js';

const height = 160;
const bottom = 22;
const left = 40;

// steps returns round numbers from 0 to the first one that is at least most.
function steps(most) {
	const raw = most / 4 || 1;
	const power = 10 ** Math.floor(Math.log10(raw));
	const step = [1, 2, 5, 10].map((m) => m * power).find((v) => v >= raw);
	const whole = most >= 1 && step < 1 ? 1 : step;
	return Array.from({length: Math.ceil(most / whole) + 1 || 2}, (_, i) => i * whole);
}

// bars draws the days, which have the form {day, values: {series: n}}. The bars of a day are stacked in the order of
// series, a list of {id, name, kind}.
export function bars(title, days, series, show = number) {
	const total = (d) => series.reduce((sum, k) => sum + (d.values[k.id] || 0), 0);
	const marks = steps(Math.max(...days.map(total), 0));
	const top = marks.at(-1) || 1;
	const width = Math.max(320, left + days.length * 22 + 8);
	const y = (n) => 8 + (height - bottom - 8) * (1 - n / top);
	const slot = (width - left - 8) / days.length;
	const bar = Math.min(slot - 4, 28);
	const drawing = s('svg', {viewBox: '0 0 ' + width + ' ' + height, class: 'chart', role: 'img', 'aria-label': title, width, height});
	for (const m of marks) {
		drawing.append(s('line', {x1: left, x2: width - 8, y1: y(m), y2: y(m), class: 'grid'}),
			s('text', {x: left - 6, y: y(m) + 4, class: 'tick', 'text-anchor': 'end'}, show(m)));
	}
	days.forEach((d, i) => {
		let from = 0;
		const x = left + i * slot + (slot - bar) / 2;
		const g = s('g', s('title', d.day + ': ' + series.filter((k) => d.values[k.id]).map((k) => k.name + ' ' + show(d.values[k.id])).join(', ')));
		for (const k of series) {
			const n = d.values[k.id] || 0;
			if (!n) continue;
			g.append(s('rect', {x, width: bar, y: y(from + n), height: Math.max(y(from) - y(from + n), 1), class: 'bar ' + k.kind}));
			from += n;
		}
		drawing.append(g);
		const every = Math.ceil(44 / slot);
		if (i % every === 0) drawing.append(s('text', {x: x + bar / 2, y: height - 6, class: 'tick', 'text-anchor': 'middle'}, d.day.slice(5)));
	});
	const legend = h('ul.legend', series.map((k) => h('li', h('span', {class: 'key ' + k.kind, 'aria-hidden': 'true'}), k.name)));
	const frame = wide(title, drawing);
	requestAnimationFrame(() => { frame.scrollLeft = width; }); // scrolls to the newest day
	return h('section.card.numbers', h('h2', title), series.length > 1 && legend, frame, table(title, days, series, show));
}

function table(title, days, series, show) {
	const head = h('tr', h('th', {scope: 'col'}, t('day')), series.map((k) => h('th', {scope: 'col'}, k.name)));
	const rows = days.map((d) => h('tr', h('th', {scope: 'row'}, d.day), series.map((k) => h('td', show(d.values[k.id] || 0)))));
	return h('details.plain', h('summary', t('numbers.table')), wide(title, h('table', h('thead', head), h('tbody', rows))));
}
