import { render } from 'preact';
import 'uplot/dist/uPlot.min.css';
import './style/tokens.css';
import './style/base.css';
import './style/frame.css';
import './style/parts.css';
import './style/studio.css';
import { Console } from './app.tsx';
import { startRouter } from './page/router.ts';
import { startSession } from './session/session.ts';

const place = document.getElementById('app');
if (place === null) throw new Error('index.html has no #app');
startRouter();
void startSession();
render(<Console />, place);
