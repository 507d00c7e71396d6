// Search runs in a worker, which browsers do not start for pages opened from a disk. There, a hidden frame stands in.
"use strict";

class FrameWorker extends EventTarget {
  constructor(url) {
    super();
    this.waiting = [];
    this.frame = document.createElement("iframe");
    this.frame.hidden = true;
    document.body.append(this.frame);
    this.start(String(url));
  }

  start(url) {
    const inside = this.frame.contentWindow;
    inside.postMessage = (data) => this.answer(data);
    inside.importScripts = (...urls) => Promise.all(urls.map((each) => this.load(each)));
    this.load(url).then(() => {
      const early = this.waiting;
      this.waiting = null;
      early.forEach((data) => this.postMessage(data));
    });
  }

  load(url) {
    return new Promise((resolve, reject) => {
      const script = this.frame.contentDocument.createElement("script");
      script.src = url;
      script.addEventListener("load", resolve);
      script.addEventListener("error", reject);
      this.frame.contentDocument.body.append(script);
    });
  }

  postMessage(data) {
    if (this.waiting) {
      this.waiting.push(data);
    } else {
      this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }));
    }
  }

  answer(data) {
    setTimeout(() => {
      const event = new MessageEvent("message", { data });
      this.dispatchEvent(event);
      if (this.onmessage) this.onmessage(event);
    });
  }

  terminate() {
    this.frame.remove();
  }
}

if (location.protocol === "file:") window.Worker = FrameWorker;
