// This module makes a report for an auditor. It opens the report in a separate tab, or saves it as a file.
import {post, send} from './api.js';
import {h, icon, said, replace, save, loading} from './dom.js';
import {t} from './i18n.js';
import {failure} from './now.js';
import {periodChoice, since} from './changes.js';

// report shows the view.
export function report(main, route, frame) {
	const where = route.query;
	frame.name(t('paper'));
	const period = periodChoice('30', () => replace(out));
	const out = h('section', {role: 'status'});
	replace(main, h('form.card', {onsubmit: (e) => {
		e.preventDefault();
		make();
	}}, h('p', t('paper.why')), h('p.small.dim', said('span', where.project || '', {dir: 'ltr'}), where.session && [' · ', t('changes.session')]), h('div.filters', period.label),
	h('p.row', h('button.primary', icon('record'), t('paper.make')))), out);

	async function make() {
		const of = {...where, since: since(Number(period.el.value))};
		replace(out, loading());
		try {
			const made = await post('v1/reports', of);
			const link = h('a.button.primary', {href: made.path, target: '_blank', rel: 'noopener'}, icon('read'), t('paper.open'));
			replace(out, h('div.card', h('p', t('paper.ready')), h('p.row', link,
				h('button', {onclick: (e) => keep(e.currentTarget, of)}, icon('down'), t('paper.save'))), h('p.small.dim', t('paper.authority'))));
			link.focus();
		} catch (err) {
			replace(out, failure(err));
		}
	}

	async function keep(button, of) {
		button.disabled = true;
		try {
			save(await (await send('GET', 'v1/report', {query: of, headers: {Accept: 'text/html'}})).blob(), 'report.html');
		} catch (err) {
			out.append(failure(err));
		}
		button.disabled = false;
	}
}
