;; Is a core module, which has no typed interface.
;; kind: health
;; refused: inspect
;; says: is a core module
(module (func (export "interpret")))
