import { createRoot } from "react-dom/client";
import "./styles/tokens.css";
import "./styles/base.css";

createRoot(document.getElementById("root") as HTMLElement).render(<main>NoETL</main>);
