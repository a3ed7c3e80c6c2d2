"""SQL templates: values by lexical place, statements split."""
