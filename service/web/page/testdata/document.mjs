// This module is a document without a browser. It has only the functions that the page's Markdown uses.
class Text { constructor(text) { this.text = text; } get textContent() { return this.text; } get html() { return this.text; } }
class Node {
	constructor(name) { this.name = name; this.children = []; this.attributes = {}; }
	append(...list) { for (const c of list) { if (c.parent) c.remove(); this.children.push(c); c.parent = this; } }
	remove() {
		const list = this.parent.children;
		list.splice(list.lastIndexOf(this), 1);
		this.parent = undefined;
	}
	setAttribute(k, v) { this.attributes[k] = v; }
	addEventListener() {}
	get lastChild() { return this.children.at(-1); }
	get textContent() { return this.children.map((c) => c.textContent).join(''); }
	get html() {
		const href = this.attributes.href ? ' ' + this.attributes.href : '';
		return '<' + this.name + href + '>' + this.children.map((c) => c.html).join('') + '</' + this.name + '>';
	}
}
Object.setPrototypeOf(Text.prototype, Node.prototype);
globalThis.Node = Node;
globalThis.document = {createElement: (n) => new Node(n), createElementNS: (_, n) => new Node(n), createTextNode: (t) => new Text(t), documentElement: new Node('html'), querySelector: () => null};
globalThis.localStorage = {getItem: () => null, setItem() {}};
