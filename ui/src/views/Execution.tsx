export function ExecutionPage() { return <h1>Execution</h1>; }
