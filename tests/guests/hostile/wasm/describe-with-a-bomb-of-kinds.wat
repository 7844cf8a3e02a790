;; Claims half a billion kinds of object.
;; kind: health
;; refused: describe
(component
  {{before}}
  (core module $code
    {{core}}
    (data (i32.const 88) "\00\04\00\00\ff\ff\ff\1f")
    {{describe}}
    {{configure}}
    {{interpret}})
  {{after}})
