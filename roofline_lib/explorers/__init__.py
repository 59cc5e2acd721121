"""Pictures with controls: one module for each lesson's explorer, all on one stage (`stage`), its
`marks`, `controls` and `base`."""
