;; Has a version of sixty thousand bytes.
;; kind: health
;; refused: describe
;; says: version
(component
  {{before}}
  (core module $code
    {{core}}
    (data (i32.const 72) "\00\02\00\00\60\ea\00\00")
    {{describe}}
    {{configure}}
    {{interpret}})
  {{after}})
