// This device: its name, what it may do, what it prefers, and how it leaves.
import * as device from './device.js';
import {get, me} from './api.js';
import {h, icon, said, replace, dialog, choice} from './dom.js';
import {t, choose, language, languages} from './i18n.js';
import {thoughts} from './turn.js';
import {live} from './live.js';
import {off, waking} from './push.js';
import {start} from './app.js';

const rights = ['read', 'ask', 'approve', 'admin'];

async function signOut() {
	const said = await dialog(h('h2', t('signout')), h('p', t('signout.why')), h('pre.command', 'perlica web revoke ' + me().name),
		h('div.options', h('button', {value: 'back'}, t('back')), h('button', {value: 'yes', class: 'no'}, t('signout'))));
	if (said !== 'yes') return;
	await off().catch(() => {}); // the server removes it with the device
	live.stop();
	await device.forget();
	sessionStorage.clear();
	location.hash = '';
	location.reload();
}

function card(self) {
	return h('section.card', {id: 'self'}, h('p.meta', h('span.chip.good', t('device.this'))),
		h('h2', said('span', self.name)),
		h('dl.facts', h('dt', t('device.id')), h('dd.mono', self.id), h('dt', t('device.server')), h('dd', location.host)),
		h('ul.rights', rights.map((r) => {
			const has = self.rights.includes(r);
			return h('li', {class: 'remark ' + (has ? 'good' : '')}, icon(has ? 'check' : 'cross'), h('span', h('b', t('right.' + r)), ' ', h('span.unseen', has ? t('yes') : t('no')), t('right.' + r + '.why')));
		})), h('p.row', h('button', {class: 'danger', onclick: signOut}, t('signout'))));
}

// devices is the view.
export function devices(main) {
	const self = h('div', card(me()));
	const lang = choice(t('language'), 'language', Object.entries(languages), language, () => choose(lang.el.value).then(start));
	const think = choice(t('thoughts'), 'thoughts', [['hidden', t('thoughts.hidden')], ['shown', t('thoughts.shown')]], thoughts.shown ? 'shown' : 'hidden',
		() => { thoughts.shown = think.el.value === 'shown'; });
	replace(main, self, waking(), h('section.card', h('h2', t('preferences')), h('div.filters', lang.label, think.label)),
		h('section.card', h('h2', t('device.others')), h('p.dim', t('device.others.why')),
			h('pre.command', 'perlica web pair\nperlica web devices\nperlica web revoke NAME')));
	get('v1/self').then((s) => replace(self, card(s))).catch(() => {});
}
