"""The filters, one file per topic; `noetl.expr.tables` puts them together."""
