// This module is the form for an input: text, and files by picker, paste and drop. An input that may have arrived is
// sent again only under the same id, so that it is called at most once.
import {post, may} from './api.js';
import {base64} from './device.js';
import {h, icon, said, replace, warn, tip} from './dom.js';
import {t} from './i18n.js';

const mostBytes = 16 << 20;

// Composer is the form. The function about returns the destination of the input. sent gets Perlica's answer and the
// sent body.
export class Composer {
	constructor(draft, about, sent) {
		this.key = 'draft ' + draft;
		this.about = about;
		this.sent = sent;
		this.files = [];
		this.id = crypto.randomUUID();
		this.list = h('ul.files', {hidden: true});
		this.alert = h('div', {role: 'alert'});
		this.text = h('textarea', {rows: 1, name: 'text', 'aria-label': t('compose.label'), placeholder: t('compose.label'), dir: 'auto', oninput: () => this.typed(), onkeydown: (e) => this.pressed(e), onpaste: (e) => this.dropped(e, e.clipboardData)});
		this.picker = h('input', {type: 'file', multiple: true, class: 'unseen', tabindex: '-1', 'aria-hidden': 'true', onchange: () => {
			this.add(this.picker.files);
			this.picker.value = '';
		}});
		this.clip = h('button', {class: 'quiet square', ...tip(t('compose.attach')), onclick: () => this.picker.click()}, icon('clip'));
		this.go = h('button.primary.square.send', tip(t('compose.send')), icon('send'));
		this.extra = h('span.inputs', {hidden: true});
		this.form = h('form', {onsubmit: (e) => {
			e.preventDefault();
			this.send();
		}}, this.alert, this.list, h('div.inputs', this.clip, this.picker, this.text, this.extra, this.go));
		this.el = h('div.composer', {role: 'region', 'aria-label': t('compose.label'), ondragover: (e) => this.over(e, true), ondragleave: (e) => this.over(e, false), ondrop: (e) => {
			this.over(e, false);
			this.dropped(e, e.dataTransfer);
		}}, this.form);
		this.text.value = sessionStorage.getItem(this.key) || '';
		if (!may('ask')) replace(this.form, h('p.dim.small', t('compose.notyours')));
	}

	// mode shows that an input would wait for the running turn. It also shows the button that stops this turn.
	mode(running, stop) {
		this.running = running;
		const label = t(running ? 'compose.queue' : 'compose.send');
		this.go.setAttribute('aria-label', label);
		this.go.title = label;
		replace(this.go, icon(running ? 'queue' : 'send'));
		this.extra.hidden = !running;
		replace(this.extra, running && h('button', {class: 'danger square', ...tip(t('compose.stop')), onclick: (e) => stop(e.currentTarget)}, icon('stop')));
	}

	over(e, on) {
		if (e.type !== 'drop') e.preventDefault();
		this.el.classList.toggle('over', on);
	}

	typed() {
		this.text.style.height = 'auto';
		this.text.style.height = Math.min(this.text.scrollHeight + 2, innerHeight * 0.4) + 'px';
		sessionStorage.setItem(this.key, this.text.value);
	}

	// pressed sends the input at Enter. It does not do so on a touch screen's keyboard or while a word is being
	// composed.
	pressed(e) {
		if (e.key !== 'Enter' || e.shiftKey || e.isComposing) return;
		if (matchMedia('(pointer: coarse)').matches && !e.ctrlKey && !e.metaKey) return;
		e.preventDefault();
		this.send();
	}

	dropped(e, data) {
		if (!data || !data.files.length) return;
		e.preventDefault();
		this.add(data.files);
	}

	add(files) {
		const size = [...this.files, ...files].reduce((n, f) => n + f.size, 0);
		if (size > mostBytes || this.files.length + files.length > 20) {
			this.say(t('compose.toobig'));
			return;
		}
		this.files.push(...files);
		this.draw();
	}

	draw() {
		this.list.hidden = this.files.length === 0;
		replace(this.list, this.files.map((f) => h('li', said('span', f.name), h('button', {type: 'button', class: 'quiet square', 'aria-label': t('compose.remove', {name: f.name}), onclick: () => {
			this.files.splice(this.files.indexOf(f), 1);
			this.draw();
		}}, icon('cross')))));
	}

	say(text) { replace(this.alert, text && warn(text)); }

	async send() {
		const text = this.text.value;
		if (this.sending || !text.trim()) return;
		const about = this.about();
		if (!about) return;
		const input = JSON.stringify([about, text, this.files.map((f) => [f.name, f.size, f.lastModified])]);
		if (this.tried && this.tried !== input) this.id = crypto.randomUUID(); // a changed input is another input
		this.tried = input;
		this.sending = true;
		this.go.disabled = true;
		this.say('');
		try {
			const attachments = await Promise.all(this.files.map(async (f) => ({name: f.name || 'file', data: base64(new Uint8Array(await f.arrayBuffer()))})));
			const body = {...about, text, attachments};
			const answer = await post('v1/inputs', body, {'Idempotency-Key': this.id});
			this.id = crypto.randomUUID();
			this.tried = '';
			this.files = [];
			this.text.value = '';
			this.typed();
			this.draw();
			this.sent(answer, body);
		} catch (err) {
			this.say(err.lost ? t('compose.lost') : t('compose.failed') + ' ' + err.message);
		}
		this.sending = false;
		this.go.disabled = false;
	}
}
