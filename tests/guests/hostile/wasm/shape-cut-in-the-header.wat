;; Is five bytes of a plugin.
;; kind: health
;; cut: 5 bytes
;; refused: inspect
;; says: no WebAssembly
(component
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    {{interpret}})
  {{after}})
