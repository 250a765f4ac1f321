// What runs and what asks, over all projects: read when something happens, never guessed.
import {get, Events} from './api.js';

// What the stream says in few words; the texts of turns come to the session's own stream.
const types = ['question', 'answer', 'run.received', 'run.started', 'run.stopping', 'run.finished', 'session.freed'];

// How many columns a row of a question may have: the page breaks rows itself.
const columns = 400;

class Live {
	constructor() {
		this.clear();
		this.watchers = new Set();
	}

	clear() {
		this.questions = new Map(); // open ones by id, oldest first
		this.closed = new Map(); // how questions ended that were open here
		this.runs = [];
		this.unreadable = [];
		this.known = false; // whether all of this was read once
		this.state = 'connecting';
	}

	start() {
		this.clear();
		this.events = new Events({type: types}, undefined, {
			open: () => this.refresh(),
			reset: () => this.refresh(),
			event: (line) => this.took(line),
			state: (word) => {
				this.state = word;
				if (word === 'broken' && !this.known) this.refresh(); // it says why nothing is shown
				this.tell();
			},
		});
	}

	stop() {
		if (this.events) this.events.close();
		this.events = undefined;
		clearTimeout(this.timer);
	}

	// watch calls f after every change, until the function that it returns is called.
	watch(f) {
		this.watchers.add(f);
		return () => this.watchers.delete(f);
	}

	tell(line) {
		for (const f of [...this.watchers]) f(line);
	}

	took(line) {
		if (line.type === 'answer' && line.id) this.end(line.id, line);
		clearTimeout(this.timer);
		this.timer = setTimeout(() => this.refresh(), 30);
		this.tell(line);
	}

	// end takes a question off the open ones; how is {answer, reason}.
	end(id, how) {
		if (!this.questions.delete(id) && this.closed.has(id)) return;
		this.closed.set(id, how);
		this.tell();
	}

	// refresh reads again. One that comes while another is under way follows it.
	async refresh() {
		if (this.reading) {
			this.again = true;
			return;
		}
		this.reading = true;
		try {
			const [asked, running] = await Promise.all([get('v1/questions', {width: columns}), get('v1/runs', {state: 'open'})]);
			const before = this.questions;
			this.questions = new Map(asked.questions.filter((q) => !this.closed.has(q.id)).map((q) => [q.id, q]));
			for (const id of before.keys()) if (!this.questions.has(id) && !this.closed.has(id)) this.gone(id, before.get(id));
			this.runs = running.runs;
			this.unreadable = asked.unreadable;
			this.known = true;
			this.failed = undefined;
		} catch (err) {
			this.failed = err;
		}
		this.reading = false;
		this.tell();
		if (this.again) {
			this.again = false;
			this.refresh();
		}
	}

	// gone asks how a question ended that is not open any more.
	async gone(id, q) {
		this.closed.set(id, {});
		try {
			const now = await get('v1/questions/' + encodeURIComponent(id), {project: q.project, context: q.context});
			this.closed.set(id, {answer: now.answer, ended: now.ended});
		} catch { /* that it is closed is known */ }
		this.tell();
	}
}

export const live = new Live();
