"""The filters, one file per topic; `noetl.expr.builtins.tables` joins them."""
